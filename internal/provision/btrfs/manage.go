package btrfs

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/run"
)

// newUUID returns a UUID for a filesystem that Berth makes. Its second half follows from its first
// and the label, so it is the mark that Berth made the filesystem: mkfs writes it with everything
// else, and a crash cannot leave a filesystem without it.
func newUUID(label string) string {
	half := make([]byte, 8)
	_, _ = rand.Read(half) // it never fails
	return signed(half, label)
}

func signed(half []byte, label string) string {
	sum := sha256.Sum256(append([]byte("berth.dev/managed="+label+"\n"), half...))
	b := append(bytes.Clone(half), sum[:8]...)
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// ours says whether Berth made the filesystem of a UUID.
func ours(fsid, label string) bool {
	b, err := hex.DecodeString(strings.ReplaceAll(fsid, "-", ""))
	return err == nil && len(b) == 16 && signed(b[:8], label) == fsid
}

func stands(r provision.Reason, format string, args ...any) provision.Outcome {
	return provision.Outcome{Reason: r, Message: fmt.Sprintf(format, args...)}
}

// manager makes filesystems, lets them grow, and keeps those that Berth mounted itself.
type manager struct {
	*store
	mu sync.Mutex
	// kept are the filesystems that Berth mounted, by their UUIDs.
	kept map[string]*kernel.Filesystem
}

// Ensure implements provision.Manager. From then on the filesystems of the label are pools.
func (p *manager) Ensure(ctx context.Context, w provision.PoolWish) (none provision.Outcome, _ error) {
	if err := w.Check(); err != nil {
		return none, err
	}
	name := strings.TrimPrefix(w.Pool.Name, provision.BtrfsPrefix)
	switch {
	case w.Pool.Type != provision.Btrfs:
		return none, fmt.Errorf("%w: btrfs has no pools of type %s", provision.ErrUnsupported, w.Pool.Type)
	case !label.MatchString(name):
		return none, fmt.Errorf("%w: Berth makes no filesystem with the label %q", provision.ErrInvalid, name)
	}
	p.want(w.Pool)
	unlock, err := p.engine.UnitLocks.Lock(ctx, w.Pool.Name) // no filesystem is locked by that
	if err != nil {
		return none, err
	}
	return run.Do(ctx, &p.engine.Tasks, func(ctx context.Context) (provision.Outcome, error) {
		defer unlock()
		if err := p.engine.RefreshDue(ctx); err != nil {
			return none, err
		}
		var there []string
		trouble := ""
		for fsid, u := range p.engine.All() {
			if u.label == name {
				there, trouble = append(there, fsid), u.Trouble(p.config.Now())
			}
		}
		switch {
		case len(there) > 1:
			return stands(provision.PoolTroubled, "%d filesystems have the label %s", len(there), name), nil
		case len(there) == 1 && !p.missing(there[0]):
			return p.ensureThere(ctx, w, there[0], name, trouble)
		}
		return p.ensureAway(ctx, w, name, len(there) > 0)
	})
}

func (p *store) missing(fsid string) (missing bool) {
	p.engine.With(fsid, func(u *facts) { missing = u == nil || u.missing })
	return missing
}

// ensureThere lets a filesystem grow that is mounted.
func (p *manager) ensureThere(ctx context.Context, w provision.PoolWish, fsid, name, trouble string) (none provision.Outcome, _ error) {
	if !ours(fsid, name) {
		return stands(provision.PoolForeign, "filesystem %s was not made by Berth: it is used as it is, and no disk is added to it", name), nil
	}
	f, err := p.keep(fsid, func() (*kernel.Filesystem, error) { return kernel.Open(fsid, true) })
	if err != nil {
		return none, err
	}
	switch {
	case trouble != "":
		return stands(provision.PoolTroubled, "filesystem %s is not changed: %s", name, trouble), nil
	case len(w.Disks) == 0:
		return stands(provision.PoolAsAsked, "filesystem %s is there", name), nil
	}
	return p.take(ctx, w, fsid, stands(provision.PoolGrown, "filesystem %s was grown", name), func(nodes []string) error {
		// The program looks once more whether the disks are empty.
		return p.run("btrfs", "device add", slices.Concat([]string{"device", "add", "--nodiscard"}, nodes, []string{f.Path()})...)
	})
}

// ensureAway mounts a filesystem that Berth made, or makes it.
func (p *manager) ensureAway(ctx context.Context, w provision.PoolWish, name string, known bool) (none provision.Outcome, _ error) {
	found := kernel.Search(w.Search, name)
	switch {
	case len(found) > 0 && found[0].Twins != "":
		return stands(provision.PoolTroubled, "%s bear the same part of filesystem %s, and it is mounted from neither: one is a copy; clear it (wipefs --all) or take it out", found[0].Twins, name), nil
	case len(found) > 1:
		return stands(provision.PoolTroubled, "%d filesystems with the label %s are on the disks: mount the right one", len(found), name), nil
	case len(found) == 1 && !ours(found[0].FSID, name):
		return stands(provision.PoolForeign, "filesystem %s is on the disks and was not made by Berth: mount it", name), nil
	case len(found) == 1:
		_, err := p.keep(found[0].FSID, found[0].Import)
		return stands(provision.PoolImported, "filesystem %s was mounted", name), err
	case known:
		return stands(provision.PoolTroubled, "filesystem %s is not made anew: bring its disks back", name), nil
	case len(w.Disks) == 0:
		return stands(provision.PoolAwaitsDisks, "there is no filesystem %s, and no empty disk for it", name), nil
	}
	fsid := newUUID(name)
	return p.take(ctx, w, fsid, stands(provision.PoolMade, "filesystem %s was made", name), func(nodes []string) error {
		if err := p.run("mkfs.btrfs", "", append([]string{"-q", "--nodiscard", "-d", "single", "-L", name, "-U", fsid}, nodes...)...); err != nil {
			return err
		}
		_, err := p.keep(fsid, func() (*kernel.Filesystem, error) {
			return kernel.Bring(nodes[0], fsid)
		})
		return err
	})
}

func (p *manager) run(program, operation string, args ...string) error {
	c := run.Command{Operation: strings.TrimSpace(program + " " + operation), Program: program, Args: args}
	_, err := p.config.Runner.Change(c)
	return err
}

// keep keeps a filesystem of Berth's mounted, and has it count what is written.
func (p *manager) keep(fsid string, open func() (*kernel.Filesystem, error)) (*kernel.Filesystem, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.kept[fsid]; f != nil {
		return f, nil
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	if err := f.EnableQuotas(); err != nil {
		f.Close()
		return nil, fmt.Errorf("turning on quotas: %w", err)
	}
	p.kept[fsid] = f
	p.engine.Book.Changed(fsid)
	p.engine.Changed.Set()
	return f, nil
}

// release no longer keeps any filesystem mounted.
func (p *manager) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for fsid, f := range p.kept {
		f.Close()
		delete(p.kept, fsid)
	}
}

// take takes the disks that are lent, and reads the filesystem again.
func (p *manager) take(ctx context.Context, w provision.PoolWish, fsid string, o provision.Outcome, with func(nodes []string) error) (none provision.Outcome, _ error) {
	if p.config.Disks == nil {
		return none, fmt.Errorf("%w: no disks are lent to make %s of", provision.ErrUnsupported, w.Pool.Name)
	}
	var taken []string
	refused, err := p.config.Disks.Lend(ctx, w.Disks, func(nodes []string) error {
		taken = nodes
		return with(nodes)
	})
	p.engine.Book.Changed(fsid)
	p.engine.Changed.Set()
	why := errors.Join(refused...)
	switch {
	case err != nil:
		return none, err
	case len(taken) == 0:
		return stands(provision.DisksRefused, "no disk was taken for filesystem %s: %v", w.Pool.Name, why), nil
	}
	o.Message += " of " + strings.Join(taken, ", ")
	if why != nil {
		o.Message += fmt.Sprintf("; others were not taken: %v", why)
	}
	return o, nil
}
