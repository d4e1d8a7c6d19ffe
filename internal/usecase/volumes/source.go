package volumes

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/quantity"
	"berth.dev/berth/internal/usecase"
)

// origin describes the source that a volume is to be a copy of, as it is now. It has
// one place, since volumes have one copy: the new volume goes there or nowhere.
type origin struct {
	// name for people: "snapshot snap-...".
	name string
	at   place
	// bytes is the smallest size of the copy. least is the size that was requested
	// for the source. A request for least gets bytes, since the pool rounds sizes up.
	bytes, least int64
	mode         v1alpha1.VolumeMode
	fsType       v1alpha1.FSType // empty for a Block volume
}

// resolve looks up the source, once a call, and adapts the request to it. A volume that
// exists does not need its source, so resolve runs only when the volume is to be placed.
func (c *call) resolve(ctx context.Context) error {
	if c.request.Source == nil || c.origin != nil {
		return nil
	}
	var o *origin
	var err error
	if c.request.Source.Snapshot != "" {
		o, err = c.snapshot(ctx, c.request.Source.Snapshot)
	} else {
		o, err = c.volume(ctx, c.request.Source.Volume)
	}
	if err != nil {
		return err
	}
	if err := cmp.Or(o.suits(&c.request), c.selects(ctx, o), usecase.MayCopy(ctx, c.live, o.at.node, o.at.pool)); err != nil {
		return err
	}
	c.request.FSType = o.fsType
	if err := c.request.mountable(); err != nil {
		return err
	}
	if c.bytes, err = o.size(c.request.Size); err != nil {
		return err
	}
	c.origin = o
	return c.follow(ctx, o.at.node)
}

func (c *call) snapshot(ctx context.Context, name string) (*origin, error) {
	s := &v1alpha1.Snapshot{}
	if !v1alpha1.IsSnapshotName(name) {
		return nil, fail(provision.ErrNotFound, "snapshot %q does not exist: that is not an id of Berth's", name)
	}
	err := c.live.Get(ctx, types.NamespacedName{Name: name}, s)
	switch {
	case apierrors.IsNotFound(err), err == nil && s.DeletionTimestamp != nil:
		return nil, fail(provision.ErrNotFound, "snapshot %s does not exist", name)
	case err != nil:
		return nil, fmt.Errorf("reading snapshot %s: %w", name, err)
	}
	for _, replica := range s.Spec.Replicas {
		if entry := s.Entry(replica.Node); entry != nil && entry.State == v1alpha1.SnapshotReady && entry.RestoreSize != nil {
			size := entry.RestoreSize.Value()
			return &origin{
				name: "snapshot " + name, at: place{replica.Node, replica.Pool},
				bytes: size, least: size, mode: s.Spec.VolumeMode, fsType: s.Spec.FSType,
			}, nil
		}
	}
	return nil, fail(provision.ErrUnavailable, "nothing can be made from snapshot %s yet: it is not ready", name)
}

func (c *call) volume(ctx context.Context, id string) (*origin, error) {
	v, err := c.existing(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, replica := range v.Spec.Replicas {
		if entry := v.Entry(replica.Node); entry != nil && entry.Ready && entry.Capacity != nil {
			return &origin{
				name: "volume " + id, at: place{replica.Node, replica.Pool},
				bytes: entry.Capacity.Value(), least: min(v.Spec.Capacity.Value(), entry.Capacity.Value()), mode: v.Spec.VolumeMode, fsType: v.Spec.FSType,
			}, nil
		}
	}
	return nil, fail(provision.ErrUnavailable, "nothing can be made from volume %s now: it is not ready", id)
}

// suits returns nil for a request that a copy can meet. A copy has the bytes of its
// source, so it has the same mode and filesystem.
func (o *origin) suits(r *Request) error {
	kind := provision.TypeOf(o.at.pool)
	switch {
	case provision.TraitsOf(kind).Copies == "":
		return fail(provision.ErrUnsupported, "%s is in pool %s, whose provisioner %s makes no copies", o.name, o.at.pool, kind)
	case o.mode != r.Mode:
		return fail(provision.ErrInvalid, "%s is of volumeMode %s, and a copy of it cannot be of %s", o.name, o.mode, r.Mode)
	case r.FSType != "" && o.fsType != r.FSType:
		return fail(provision.ErrInvalid, "%s has the filesystem %s, and a copy of it cannot have %s", o.name, o.fsType, r.FSType)
	}
	return nil
}

// size returns the size of the copy.
func (o *origin) size(s Size) (int64, error) {
	bytes := max(s.Required, o.bytes)
	switch {
	case s.Required > 0 && s.Required < o.least:
		return 0, fail(ErrOutOfRange, "%s asked, less than the %s of %s", quantity.Bytes(s.Required), quantity.Bytes(o.least), o.name)
	case s.Limit > 0 && bytes > s.Limit:
		return 0, fail(ErrOutOfRange, "the limit of %s is below the %s of %s", quantity.Bytes(s.Limit), quantity.Bytes(o.bytes), o.name)
	}
	return bytes, nil
}

// selects returns nil if the class includes the pool of the source, or if that is not
// known: the ledger then says why nothing fits.
func (c *call) selects(ctx context.Context, o *origin) error {
	report := &v1alpha1.StorageNode{}
	if err := c.client.Get(ctx, types.NamespacedName{Name: o.at.node}, report); err != nil {
		return nil //nolint:nilerr // it decides nothing by itself
	}
	for i := range report.Status.Pools {
		pool := &report.Status.Pools[i]
		if pool.Name == o.at.pool && !slices.Contains(pool.Classes, c.request.PoolClass) {
			return fail(provision.ErrInvalid, "%s is in pool %s of node %s, where a copy of it has to be, and PoolClass %q does not select that pool",
				o.name, o.at.pool, o.at.node, c.request.PoolClass)
		}
	}
	return nil
}

// elsewhere is the error if none of the allowed nodes has the source.
func (o *origin) elsewhere() error {
	return fail(ErrUnplaceable, "the volume is made from %s, which is on node %s, and can be nowhere else", o.name, o.at.node)
}
