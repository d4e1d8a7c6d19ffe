package staging

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// Figures are the size and use of a published volume. A raw block volume has a
// total and nothing else.
type Figures struct {
	Block bool
	mount.Stats
}

// Stats returns the figures of a volume at one of its paths. It starts no
// process, takes no lock and does not wait for a dead device.
func (s *Service) Stats(ctx context.Context, id, path string) (Figures, error) {
	record, err := s.at(ctx, id, path)
	if err != nil {
		return Figures{}, err
	}
	if record.IsRaw() {
		return Figures{Block: true, Stats: mount.Stats{Total: record.Size}}, nil
	}
	stats, err := s.disks.Stats(ctx, path)
	if err != nil {
		return Figures{}, fmt.Errorf("reading figures of volume %s: %w", id, notFound(err))
	}
	return Figures{Stats: stats}, nil
}

// Expand grows the filesystem of a volume that is mounted at a path to its
// device, which must have grown to at least size, and returns the device's
// size. On a raw block volume there is nothing to grow, and the path does not count: the kubelet
// names that of the pod which got the device last, also after that pod has ended.
func (s *Service) Expand(ctx context.Context, id, path string, size int64) (device int64, err error) {
	end, err := s.begin(id)
	if err != nil {
		return 0, err
	}
	defer end()
	err = alone(ctx, s.locks, id, func(ctx context.Context) error {
		device, err = s.expanded(ctx, id, path, size)
		return err
	})
	return device, err
}

func (s *Service) expanded(ctx context.Context, id, path string, size int64) (device int64, err error) {
	record, err := s.usable(ctx, id)
	if err != nil {
		return 0, err
	}
	if r, is := s.disks.(Rescanner); is && record.Size < size {
		if err := r.Rescan(ctx, id); err != nil {
			return 0, err
		}
		if record, err = s.usable(ctx, id); err != nil {
			return 0, err
		}
	}
	if record.Size < size {
		return 0, fmt.Errorf("%w: the device of volume %s has %d bytes on this node, %d are asked: it is not expanded yet", provision.ErrUnavailable, id, record.Size, size)
	}
	if record.IsRaw() {
		return record.Size, nil
	}
	if err := s.shown(record, path); err != nil {
		return 0, err
	}
	if err := s.grow(ctx, record, path); err != nil {
		return 0, notFound(err)
	}
	return record.Size, nil
}

// at returns the record of a volume that is mounted or bound at a path.
func (s *Service) at(ctx context.Context, id, path string) (provision.Volume, error) {
	if err := checkID(id); err != nil {
		return provision.Volume{}, err
	}
	record, err := s.usable(ctx, id)
	if err != nil {
		return provision.Volume{}, err
	}
	return record, s.shown(record, path)
}

// shown returns ErrNotFound unless a volume is mounted or bound at a path.
func (s *Service) shown(record provision.Volume, path string) error {
	mounted, err := s.mounts(record)
	if err != nil {
		return fmt.Errorf("reading mount table: %w", err)
	}
	if !slices.Contains(mounted, s.dir.Resolve(path)) {
		return fmt.Errorf("%w: volume %s is not at %.200q", provision.ErrNotFound, record.ID, path)
	}
	return nil
}

// notFound turns ErrNotMounted, of a mount that went away meanwhile, into ErrNotFound.
func notFound(err error) error {
	if errors.Is(err, mount.ErrNotMounted) {
		return fmt.Errorf("%w: %w", provision.ErrNotFound, err)
	}
	return err
}
