package linux

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Mounter mounts on this machine, in the mount namespace of this process.
type Mounter struct {
	runner  run.Runner
	replay  func(device string) error
	targets keyed.Locks[string]
	tasks   run.Tasks
	stats   flights
}

var _ mount.Mounter = (*Mounter)(nil)

// Config of a Mounter.
type Config struct {
	// Runner starts the tools of the filesystems.
	Runner run.Runner
}

// New makes a mounter.
func New(c Config) (*Mounter, error) {
	if c.Runner == nil {
		return nil, errors.New("a mounter needs a runner")
	}
	return &Mounter{runner: c.Runner, replay: replay}, nil
}

// Wait returns when no change is running, including changes whose callers gave up.
func (m *Mounter) Wait() { m.tasks.Wait() }

// Mount implements mount.Mounter.
func (m *Mounter) Mount(ctx context.Context, r mount.Request) error {
	if err := r.Check(); err != nil {
		return err
	}
	return m.change(ctx, r.Target, func() error { return m.mount(r) })
}

func (m *Mounter) mount(r mount.Request) error {
	source, err := identify(r.Content)
	if err != nil {
		return err
	}
	defer source.close()
	w := want{source: source, readOnly: r.ReadOnly, context: mount.Context(r.Options)}
	if done, err := mounted(r.Target, w); done || err != nil {
		return err
	}
	if !r.Content.IsTree() { // a tree is repaired with its pool
		if err := m.repair(source.device, r.Filesystem, r.Whole); err != nil {
			return err
		}
	}
	if err := mount.MakeDirectory(r.Target); err != nil {
		return err
	}
	switch err := attach(r); {
	case errors.Is(err, unix.EUCLEAN), errors.Is(err, unix.EBADMSG):
		return fmt.Errorf("%w: mounting %s: %w: repair it by hand (%s)", mount.ErrCorrupt, r.Content.Source, err, mount.RepairTool(r.Filesystem))
	case r.Content.IsTree() && errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%w: filesystem %s", provision.ErrNotFound, r.Content.Source)
	case err != nil:
		return fmt.Errorf("mounting %s at %s: %w", r.Content.Source, r.Target, err)
	}
	if done, err := mounted(r.Target, w); !done { // compares the number of the proved device
		_ = unix.Unmount(r.Target, unix.UMOUNT_NOFOLLOW) // also: ZFS may accept an option and ignore it
		return cmp.Or(err, fmt.Errorf("%w: %s after mounting at %s", mount.ErrNotMounted, r.Content.Source, r.Target))
	}
	return nil
}

var optionFlags = map[string]uintptr{
	"noatime": unix.MS_NOATIME, "nodiratime": unix.MS_NODIRATIME, "relatime": unix.MS_RELATIME,
	"strictatime": unix.MS_STRICTATIME, "lazytime": unix.MS_LAZYTIME, "nodev": unix.MS_NODEV,
	"noexec": unix.MS_NOEXEC, "nosuid": unix.MS_NOSUID, "sync": unix.MS_SYNCHRONOUS, "dirsync": unix.MS_DIRSYNC,
}

// options splits accepted options into the kernel's flags and the filesystem's own, after those
// that are given.
func options(r mount.Request, own []string) (flags uintptr, data string) {
	if r.ReadOnly {
		flags = unix.MS_RDONLY
	}
	for _, o := range r.Options {
		switch {
		case mount.IsFlag(o):
			flags |= optionFlags[o]
		case !mount.IsContext(o) && !slices.Contains(own, o):
			own = append(own, o)
		}
	}
	if label := mount.Context(r.Options); label != "" { // the kernel accepts it only once
		own = append(own, `context="`+label+`"`)
	}
	return flags, strings.Join(own, ",")
}

// change carries out an operation on a target to its end. Each target has one at a time.
func (m *Mounter) change(ctx context.Context, target string, operation func() error) error {
	unlock, err := m.targets.Lock(ctx, target)
	if err != nil {
		return err
	}
	_, err = run.Do(ctx, &m.tasks, func(context.Context) (struct{}, error) {
		defer unlock()
		return struct{}{}, operation()
	})
	return err
}
