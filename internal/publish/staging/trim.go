package staging

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// Trim has a staged filesystem discard the free blocks in a part of it: length bytes from start on. A volume
// that is not staged is ErrNotStaged. Stage, Publish and Unstage are admitted meanwhile: an unmount of the
// staging path waits until the part is done. The caller asks for parts that take no more than moments.
func (s *Service) Trim(ctx context.Context, id string, start, length int64) (t mount.Trimmed, err error) {
	if err := checkID(id); err != nil {
		return t, err
	}
	record, err := s.intended(ctx, id)
	if err != nil {
		return t, err
	}
	mounted, err := s.mounts(record)
	if err != nil {
		return t, fmt.Errorf("reading mount table: %w", err)
	}
	staged := s.dir.Staged(mounted)
	if staged == "" {
		return t, fmt.Errorf("%w: %w: volume %s", ErrNotStaged, mount.ErrNotMounted, id)
	}
	if record.IsRaw() {
		return t, fmt.Errorf("%w: volume %s has no filesystem that Berth knows: nothing says which of its blocks are free", provision.ErrUnsupported, id)
	}
	err = s.owner.Holds(ctx, id, "", func(ctx context.Context) error {
		t, err = s.disks.Trim(ctx, mount.TrimRequest{Content: record.Content, Target: staged, Start: start, Length: length})
		return err
	})
	if err != nil {
		return mount.Trimmed{}, fmt.Errorf("trimming volume %s: %w", id, err)
	}
	return t, nil
}
