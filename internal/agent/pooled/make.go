package pooled

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/replica"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/poolclass"
	"berth.dev/berth/internal/provision"
)

// Make implements owner.Pools. A copy is made as a volume with one copy is: in the pool that the Volume names for
// this node, if the class gives it. Neither is formatted here: the node that writes makes the filesystem, and
// all others get it by a stream.
func (p *Pools) Make(ctx context.Context, v *v1alpha1.Volume, size int64) error {
	class, err := p.Objects.Class(ctx, v.Spec.PoolClass)
	if err != nil {
		return fmt.Errorf("%w: making the copy of volume %s: %w", provision.ErrUnavailable, v.Name, err)
	}
	present, err := p.Disks.Get(ctx, v.Name)
	switch {
	case errors.Is(err, provision.ErrNotFound):
		return p.create(ctx, v, class, size)
	case err != nil:
		return err
	}
	if _, err := p.Disks.Expand(ctx, provision.ExpandRequest{ID: v.Name, Size: size, Limits: poolclass.Limits(class)}); err != nil {
		return err
	}
	return p.grow(ctx, present)
}

// create makes a copy that is not there. A Volume from a backup may not know of the copy that was there: so it is
// made only if no pool is away that may have one.
func (p *Pools) create(ctx context.Context, v *v1alpha1.Volume, class *v1alpha1.PoolClass, size int64) error {
	if err := p.absent(ctx, v.Name, nil); err != nil {
		return err
	}
	if v.Spec.Source != nil {
		return fmt.Errorf("%w: volume %s is to begin as a copy of another, which volumes with copies on several nodes cannot yet", provision.ErrUnsupported, v.Name)
	}
	r, err := replica.Request(v, class, p.Node, p.Report.Pool)
	if err != nil {
		return err
	}
	if _, err := p.Disks.ReplicatorOf(ctx, r.Pool.Type); err != nil {
		return fmt.Errorf("volume %s in pool %s: %w", v.Name, r.Pool.Name, err)
	}
	r.Size = size
	_, err = p.Disks.Create(ctx, r)
	return err
}

// grow makes the filesystem of a volume as large as the volume wherever it is mounted. One that is not grows when
// it is staged.
func (p *Pools) grow(ctx context.Context, v provision.Volume) error {
	if v.IsRaw() {
		return nil
	}
	paths, err := p.Mounts(v)
	switch {
	case errors.Is(err, provision.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("looking for mounts of volume %s: %w", v.ID, err)
	case len(paths) == 0:
		return nil
	}
	return p.Disks.Grow(ctx, mount.GrowRequest{Content: v.Content, Target: paths[0], Filesystem: v.Filesystem})
}
