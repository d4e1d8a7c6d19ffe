package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/kubeletdir"
)

// Disks are the node's volumes and mounts.
type Disks interface {
	Get(ctx context.Context, id string) (provision.Volume, error)
	Stats(ctx context.Context, path string) (mount.Stats, error)
}

// Pools are the node's pools, as their latest report has them.
type Pools interface {
	// Named returns a pool, and whether the report has read it.
	Named(pool string) (p provision.Pool, read bool)
}

// Wishes returns the spec of a volume as far as the node knows it; nil if it does not know it.
type Wishes interface {
	Spec(ctx context.Context, id string) *v1alpha1.VolumeSpec
}

// Service tells the health of the volumes of one node. It starts no process and takes no lock.
type Service struct {
	Node   string
	Dir    kubeletdir.Dir
	Disks  Disks
	Pools  Pools
	Wishes Wishes
	// Mounts returns the paths where a volume is mounted. It must not touch the device: that may hang.
	Mounts func(v provision.Volume) ([]string, error)
}

// Health returns what is wrong with a volume; nothing if all is well. The path is where the volume is mounted,
// or empty. A volume of which the node knows nothing is provision.ErrNotFound.
func (s *Service) Health(ctx context.Context, id, path string) ([]Condition, error) {
	if !v1alpha1.IsVolumeName(id) && !strings.HasPrefix(id, provision.InlinePrefix) {
		return nil, fmt.Errorf("%w: %.64q is no volume id of this driver", provision.ErrNotFound, id)
	}
	if path != "" {
		if err := s.Dir.Check(path); err != nil {
			return nil, err
		}
	}
	wanted := s.wanted(ctx, id)
	record, err := s.Disks.Get(ctx, id)
	switch absent := errors.Is(err, provision.ErrNotFound) || errors.Is(err, provision.ErrPoolMissing); {
	case absent && wanted != "":
		f := Facts{Wanted: wanted}
		f.Pool, f.Read = s.Pools.Named(wanted)
		return Judge(f), nil
	case err != nil:
		return nil, fmt.Errorf("looking up volume %s on this node: %w", id, err)
	}
	f := Facts{Record: &record, Wanted: wanted}
	f.Pool, f.Read = s.Pools.Named(record.Pool.Name)
	f.Unanswered, err = s.unanswered(ctx, record, path)
	if err != nil {
		return nil, err
	}
	return Judge(f), nil
}

// wanted returns the pool in which the volume's object wants it on this node; empty if that is not known.
func (s *Service) wanted(ctx context.Context, id string) string {
	if spec := s.Wishes.Spec(ctx, id); spec != nil {
		for _, r := range spec.Replicas {
			if r.Node == s.Node {
				return r.Pool
			}
		}
	}
	return ""
}

// unanswered returns why the filesystem that is mounted at a path gives no figures; nil if it does, or if the
// volume has none there.
func (s *Service) unanswered(ctx context.Context, record provision.Volume, path string) (silent, err error) {
	if path == "" || record.IsRaw() || record.Problem != "" {
		return nil, nil
	}
	mounted, err := s.Mounts(record)
	if err != nil {
		return nil, fmt.Errorf("reading mount table: %w", err)
	}
	if !slices.Contains(mounted, s.Dir.Resolve(path)) {
		return nil, nil
	}
	if _, silent = s.Disks.Stats(ctx, path); errors.Is(silent, mount.ErrNotMounted) {
		return nil, nil // it went away meanwhile
	}
	return silent, nil
}
