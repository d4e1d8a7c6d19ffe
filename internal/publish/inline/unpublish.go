package inline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/staging"
)

// removeTimeout is how long the end of a pod waits for a pool that does not answer.
const removeTimeout = 20 * time.Second

// Unpublish takes a volume off its pod's target and deletes it. A pod can end
// although its device is lost: if the pool is the reason that data cannot be deleted,
// the data is left to the sweep.
func (s *Service) Unpublish(ctx context.Context, handle, target string) error {
	v, err := s.identify(handle, target)
	if err != nil {
		return err
	}
	end, err := s.begin(ctx, v)
	if err != nil {
		return err
	}
	defer end()
	if err := s.disks.Unmount(ctx, target); err != nil {
		return fmt.Errorf("unpublishing %s: %w", v, err)
	}
	if err := mount.RemovePoint(target); err != nil {
		return fmt.Errorf("unpublishing %s: %w", v, err)
	}
	removing, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	err = s.remove(removing, v)
	if ctx.Err() == nil && leftToSweep(err) {
		return nil
	}
	return err
}

// leftToSweep says whether the pools are the reason that data cannot be deleted now: one does not work, or two
// hold the volume, as after the disk was copied. Which of them is right only an administrator can tell, and the
// pod does not wait for that.
func leftToSweep(err error) bool {
	return errors.Is(err, provision.ErrPoolMissing) || errors.Is(err, provision.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, provision.ErrConflict) && !errors.Is(err, errAnothers)
}

// remove deletes a volume that is mounted nowhere, and then its mark.
func (s *Service) remove(ctx context.Context, v volume) error {
	record, err := s.disks.Get(ctx, v.id)
	if errors.Is(err, provision.ErrNotFound) {
		return s.marks.Remove(v.mark())
	}
	if err != nil {
		return fmt.Errorf("looking up %s: %w", v, err)
	}
	if record.Inline != v.owner {
		return v.check(record)
	}
	paths, err := s.mounts(record)
	switch {
	case errors.Is(err, provision.ErrNotFound): // no device, no mount
	case err != nil:
		return fmt.Errorf("looking for mounts of %s: %w", v, err)
	case len(paths) > 0:
		return fmt.Errorf("%w: %s is mounted at %s", provision.ErrInUse, v, paths[0])
	}
	if err := s.disks.Delete(ctx, v.id); err != nil {
		return fmt.Errorf("deleting %s: %w", v, err)
	}
	return s.marks.Remove(v.mark())
}

// Stats returns the figures of a volume at its target. It starts no process, takes
// no lock and does not wait for a dead device.
func (s *Service) Stats(ctx context.Context, handle, target string) (staging.Figures, error) {
	v, err := s.identify(handle, target)
	if err != nil {
		return staging.Figures{}, err
	}
	record, err := s.disks.Get(ctx, v.id)
	if err != nil {
		return staging.Figures{}, fmt.Errorf("looking up %s: %w", v, err)
	}
	if err := v.check(record); err != nil {
		return staging.Figures{}, err
	}
	mounted, err := s.mounts(record)
	if err != nil {
		return staging.Figures{}, fmt.Errorf("reading mount table: %w", err)
	}
	if !slices.Contains(mounted, s.kubelet.Resolve(target)) {
		return staging.Figures{}, fmt.Errorf("%w: %s is not at %.200q", provision.ErrNotFound, v, target)
	}
	stats, err := s.disks.Stats(ctx, target)
	if err != nil {
		return staging.Figures{}, fmt.Errorf("reading figures of %s: %w", v, err)
	}
	return staging.Figures{Stats: stats}, nil
}
