package staging

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// PublishRequest asks for a staged volume at a pod's target path: a directory,
// or for a raw block volume a file onto which the device is bound.
type PublishRequest struct {
	ID          string
	StagingPath string // unused for Block
	Target      string
	Block       bool
	ReadOnly    bool
	// Context is the SELinux context that the volume is to be staged with, or empty.
	Context string
	// Exclusive refuses a second target on this node.
	Exclusive bool
}

// Publish makes a staged volume appear at a target.
func (s *Service) Publish(ctx context.Context, r PublishRequest) error {
	paths := []string{r.Target}
	if !r.Block {
		paths = append(paths, r.StagingPath)
	}
	end, err := s.begin(r.ID, paths...)
	if err != nil {
		return err
	}
	defer end()
	return s.owner.Holds(ctx, r.ID, r.Target, func(ctx context.Context) error { return s.give(ctx, r) })
}

// give gives a volume that the node has taken to a pod.
func (s *Service) give(ctx context.Context, r PublishRequest) error {
	record, err := s.intended(ctx, r.ID)
	if err != nil {
		return err
	}
	if r.Exclusive {
		if err := s.refuseSecond(record, r); err != nil {
			return err
		}
	}
	return s.bind(ctx, record, r)
}

func (s *Service) bind(ctx context.Context, record provision.Volume, r PublishRequest) error {
	b := mount.BindRequest{
		Content: record.Content, Source: r.StagingPath, Target: r.Target, ReadOnly: r.ReadOnly, Context: r.Context,
	}
	if r.Block {
		if err := refuseFilesystem(record); err != nil {
			return err
		}
		b.Source = ""
	}
	err := s.disks.Bind(ctx, b)
	if errors.Is(err, mount.ErrNotMounted) {
		return fmt.Errorf("%w: volume %s at %s", ErrNotStaged, r.ID, r.StagingPath)
	}
	if err != nil {
		return fmt.Errorf("publishing volume %s: %w", r.ID, err)
	}
	return nil
}

// refuseSecond keeps a volume for a single writer to one target. Calls for one
// volume come one at a time, so no target can appear between this check and the bind. A target that
// has the volume got it while no other had it. Then the other paths are no second pod's: the kubelet
// binds a raw device, and a subPath, once more for the pod, at paths that are its own matter.
func (s *Service) refuseSecond(record provision.Volume, r PublishRequest) error {
	mounted, err := s.mounts(record)
	if err != nil {
		return fmt.Errorf("reading mount table: %w", err)
	}
	if slices.Contains(mounted, s.dir.Resolve(r.Target)) {
		return nil
	}
	staged := s.dir.Resolve(r.StagingPath)
	for _, path := range mounted {
		if path != staged {
			return fmt.Errorf("%w: volume %s is for a single pod and is published at %s already", provision.ErrInUse, r.ID, path)
		}
	}
	return nil
}

// Unpublish takes a volume off a target and removes the target. It needs no
// record: a pod must be able to end although its device is lost.
func (s *Service) Unpublish(ctx context.Context, id, target string) error {
	end, err := s.begin(id, target)
	if err != nil {
		return err
	}
	defer end()
	if err := s.disks.Unmount(ctx, target); err != nil {
		return fmt.Errorf("unpublishing volume %s: %w", id, err)
	}
	if err := mount.RemovePoint(target); err != nil {
		return fmt.Errorf("unpublishing volume %s: %w", id, err)
	}
	return nil
}
