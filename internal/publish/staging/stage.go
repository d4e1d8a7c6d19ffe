package staging

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// StageRequest asks for a volume's filesystem at the staging path. A raw block
// volume is recorded as given away: there is nothing to mount.
type StageRequest struct {
	ID, Path string
	Block    bool
	// Filesystem, or empty for the one that the volume was made with.
	Filesystem string
	// Options of the mount.
	Options  []string
	ReadOnly bool
}

const (
	// patience is for how long a Stage waits for a volume that the node cannot take yet. The kubelet pauses between its
	// calls, and longer after each that failed. It tells the user why a pod waits only when a call has failed, and
	// takes the volume off no pod of the node during one.
	patience = 10 * time.Second
	// pause is how long the first wait for a change lasts; each is twice as long as the one before. So a Stage is never
	// later than the calls of a kubelet would be.
	pause = 500 * time.Millisecond
)

// Stage takes a volume for this node and mounts it, after making its filesystem if it was never
// formatted. While its data is fetched, and while another node still has it, other calls for the volume are admitted.
func (s *Service) Stage(ctx context.Context, r StageRequest) error {
	if err := s.check(r.ID, r.Path); err != nil {
		return err
	}
	if err := s.owner.Fetch(ctx, r.ID); err != nil {
		return err
	}
	waits, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for again := pause; ; again = min(2*again, patience) {
		err := s.take(ctx, r)
		var soon Awaited
		if !errors.As(err, &soon) || soon.Changed() == nil {
			return err
		}
		select {
		case <-soon.Changed():
		case <-time.After(again):
		case <-waits.Done():
			return err
		}
	}
}

// take takes the volume and uses it, if the node can have it now.
func (s *Service) take(ctx context.Context, r StageRequest) error {
	end, err := s.begin(r.ID, r.Path)
	if err != nil {
		return err
	}
	defer end()
	return s.owner.Take(ctx, r.ID, func(ctx context.Context) error { return s.use(ctx, r) })
}

// use stages a volume that the node has taken.
func (s *Service) use(ctx context.Context, r StageRequest) error {
	record, err := s.intended(ctx, r.ID)
	if err != nil {
		return err
	}
	if r.Block {
		return s.given(ctx, record)
	}
	if record, err = s.formatted(ctx, record, r.Filesystem); err != nil {
		return err
	}
	whole := false
	if d, is := s.disks.(Doubter); is {
		if whole, err = d.Doubted(ctx, r.ID); err != nil {
			return err
		}
	}
	if err := s.disks.Mount(ctx, mount.Request{
		Content: record.Content, Target: r.Path,
		Filesystem: record.Filesystem, Options: options(record, r.Options), ReadOnly: r.ReadOnly, Whole: whole,
	}); err != nil {
		return fmt.Errorf("mounting volume %s: %w", r.ID, err)
	}
	// The device may have grown while the volume was not mounted.
	return s.grow(ctx, record, r.Path)
}

// given records beside a raw block volume that a pod is about to get it: it may hold data from
// then on. Without the record it looks like a reservation that no pod ever took.
func (s *Service) given(ctx context.Context, record provision.Volume) error {
	if err := refuseFilesystem(record); err != nil || record.Filesystem == provision.Raw {
		return err
	}
	if spec := s.wishes.Spec(ctx, record.ID); spec != nil && spec.VolumeMode != v1alpha1.Block {
		return fmt.Errorf("%w: volume %s is to bear %s and cannot be used as a raw block volume", provision.ErrInvalid, record.ID, spec.FSType)
	}
	_, err := s.disks.Format(ctx, provision.FormatRequest{ID: record.ID, Filesystem: provision.Raw})
	if err == nil || errors.Is(err, provision.ErrInUse) && s.published(record) {
		return nil
	}
	return fmt.Errorf("recording that volume %s is given to a pod: %w", record.ID, err)
}

// published says whether a pod has the volume already. Then an older Berth staged it. Its disk
// may be open, so that nothing can be recorded; the next Stage records it.
func (s *Service) published(record provision.Volume) bool {
	paths, err := s.mounts(record)
	return err == nil && len(paths) > 0
}

// options returns the options of a mount. A copy of an xfs filesystem bears the UUID of its
// source, and the kernel mounts only one filesystem of a UUID unless nouuid is set. For volumes
// that are no copies the kernel still checks: Berth made no second filesystem of that UUID.
// mkfs lets ext4 go on after an error of its metadata, with what it can still read.
func options(record provision.Volume, asked []string) []string {
	says := func(o string) bool { return strings.HasPrefix(o, "errors=") }
	switch {
	case record.Filesystem == provision.XFS && record.Source != (provision.Source{}):
		return append(slices.Clone(asked), "nouuid")
	case record.Filesystem == provision.Ext4 && !slices.ContainsFunc(asked, says):
		return append(slices.Clone(asked), "errors=remount-ro")
	}
	return asked
}

// Unstage unmounts a volume and gives it up. The unmount needs no record: a volume whose device
// is lost must come off as well.
func (s *Service) Unstage(ctx context.Context, id, path string) error {
	end, err := s.begin(id, path)
	if err != nil {
		return err
	}
	defer end()
	return s.owner.Give(ctx, id, Off{
		Unmount: func(ctx context.Context) error {
			if err := s.disks.Unmount(ctx, path); err != nil {
				return fmt.Errorf("unmounting volume %s: %w", id, err)
			}
			return nil
		},
		Left: func(ctx context.Context) ([]string, error) { return s.left(ctx, id) },
	})
}

// left returns the paths where a volume is mounted or bound. There are none if the kernel has no
// device of the volume's identity. The kernel removes a device-mapper device only when no process has
// it open; if another device went, writes to it reach no disk. A missing record proves nothing, nor does a
// path that leads nowhere to a device which only opening it tells from others.
func (s *Service) left(ctx context.Context, id string) ([]string, error) {
	record, err := s.disks.Get(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("looking up volume %s on this node: %w", id, err)
	}
	paths, err := s.mounts(record)
	switch {
	case errors.Is(err, provision.ErrNotFound) && record.Content.Identity != "" && !record.Content.Identity.NeedsOpening():
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading mount table: %w", err)
	}
	return paths, nil
}

// formatted returns the record of a volume that bears a filesystem.
func (s *Service) formatted(ctx context.Context, record provision.Volume, asked string) (provision.Volume, error) {
	switch {
	case record.Filesystem == provision.Raw:
		return record, fmt.Errorf("%w: volume %s was given to a pod as a raw block volume: its data would be lost", provision.ErrInvalid, record.ID)
	case record.Filesystem != "":
		return record, refuseOther(record, asked)
	}
	spec := s.wishes.Spec(ctx, record.ID)
	switch {
	case spec == nil:
		return record, fmt.Errorf("%w: volume %s was never formatted, and its Volume object, which says whether it should be, is not known yet", provision.ErrUnavailable, record.ID)
	case spec.VolumeMode != v1alpha1.Filesystem:
		return record, fmt.Errorf("%w: volume %s is a raw block volume: its data would be lost", provision.ErrInvalid, record.ID)
	case spec.Adopted && !record.Content.IsTree(): // in a tree none is made
		return record, fmt.Errorf("%w: volume %s was adopted with filesystem %s, and no filesystem was ever made on it: making one could be the end of its data",
			provision.ErrConflict, record.ID, spec.FSType)
	}
	fs := string(spec.FSType)
	if asked != "" && asked != fs {
		return record, fmt.Errorf("%w: volume %s is to bear %s, not %s", provision.ErrInvalid, record.ID, fs, asked)
	}
	record, err := s.disks.Format(ctx, provision.FormatRequest{ID: record.ID, Filesystem: fs, Options: spec.MkfsOptions})
	if err != nil {
		return record, fmt.Errorf("making filesystem: %w", err)
	}
	return record, nil
}

func (s *Service) grow(ctx context.Context, record provision.Volume, path string) error {
	r := mount.GrowRequest{Content: record.Content, Target: path, Filesystem: record.Filesystem}
	if err := s.disks.Grow(ctx, r); err != nil {
		return fmt.Errorf("growing filesystem of volume %s: %w", record.ID, err)
	}
	return nil
}

func refuseOther(record provision.Volume, asked string) error {
	if asked != "" && asked != record.Filesystem {
		return fmt.Errorf("%w: volume %s bears %s, not %s", provision.ErrInvalid, record.ID, record.Filesystem, asked)
	}
	return nil
}

func refuseFilesystem(record provision.Volume) error {
	if record.Content.IsTree() {
		return fmt.Errorf("%w: volume %s is a filesystem of %s and cannot be used as a raw block volume",
			provision.ErrInvalid, record.ID, provision.TraitsOfTree(record.Content.Tree).Type)
	}
	if !record.IsRaw() {
		return fmt.Errorf("%w: volume %s bears %s and cannot be used as a raw block volume", provision.ErrInvalid, record.ID, record.Filesystem)
	}
	return nil
}
