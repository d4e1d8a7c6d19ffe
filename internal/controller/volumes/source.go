package volumes

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/usecase"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/quantity"
)

// origin is what a volume is to begin as a copy of, as it is now. It has one
// place, since volumes have one copy: the new volume goes there or nowhere.
type origin struct {
	// name for people: "snapshot snap-...".
	name string
	at   place
	// bytes that the copy needs at least. Who asks for least, which is what the
	// source was asked for, is given them: sizes are rounded up by the pool.
	bytes, least int64
	mode         v1alpha1.VolumeMode
	fsType       v1alpha1.FSType // empty for a Block volume
}

// resolve looks up the source, once a call, and brings the request in line with it.
// A volume that exists does not need its source, so this is left until it is to be placed.
func (a *attempt) resolve(ctx context.Context) error {
	if a.request.Source == nil || a.origin != nil {
		return nil
	}
	var o *origin
	var err error
	if a.request.Source.Snapshot != "" {
		o, err = a.snapshot(ctx, a.request.Source.Snapshot)
	} else {
		o, err = a.volume(ctx, a.request.Source.Volume)
	}
	if err != nil {
		return err
	}
	if err := cmp.Or(o.suits(&a.request), a.selects(ctx, o), usecase.MayCopy(ctx, a.live, o.at.node, o.at.pool)); err != nil {
		return err
	}
	if a.request.Mode == v1alpha1.Filesystem {
		a.request.FSType = o.fsType
		if err := a.request.mountable(); err != nil {
			return err
		}
	}
	if a.bytes, err = o.size(a.request.Size); err != nil {
		return err
	}
	a.origin = o
	return a.follow(ctx, o.at.node)
}

func (a *attempt) snapshot(ctx context.Context, name string) (*origin, error) {
	s := &v1alpha1.Snapshot{}
	if !v1alpha1.IsSnapshotName(name) {
		return nil, fail(provision.ErrNotFound, "snapshot %q does not exist: that is not an id of Berth's", name)
	}
	err := a.live.Get(ctx, types.NamespacedName{Name: name}, s)
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

func (a *attempt) volume(ctx context.Context, id string) (*origin, error) {
	v, err := a.existing(ctx, id)
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

// suits is nil for a request that a copy can meet. Bytes are copied, so what is in
// them stays what it is.
func (o *origin) suits(r *Request) error {
	kind := provision.TypeOf(o.at.pool)
	switch {
	case !provision.Copies(kind):
		return fail(provision.ErrUnsupported, "%s is in pool %s, whose provisioner %s makes no copies", o.name, o.at.pool, kind)
	case o.mode != r.Mode:
		return fail(provision.ErrInvalid, "%s is of volumeMode %s, and a copy of it cannot be of %s", o.name, o.mode, r.Mode)
	case r.FSType != "" && o.fsType != r.FSType:
		return fail(provision.ErrInvalid, "%s has the filesystem %s, and a copy of it cannot have %s", o.name, o.fsType, r.FSType)
	}
	return nil
}

// size is how large the copy is made.
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

// selects is nil if the class takes in the pool of the source, or if that is not
// known: the ledger then says why nothing fits.
func (a *attempt) selects(ctx context.Context, o *origin) error {
	report := &v1alpha1.StorageNode{}
	if err := a.client.Get(ctx, types.NamespacedName{Name: o.at.node}, report); err != nil {
		return nil //nolint:nilerr // it decides nothing by itself
	}
	for i := range report.Status.Pools {
		pool := &report.Status.Pools[i]
		if pool.Name == o.at.pool && !slices.Contains(pool.Classes, a.request.PoolClass) {
			return fail(provision.ErrInvalid, "%s is in pool %s of node %s, where a copy of it has to be, and PoolClass %q does not select that pool",
				o.name, o.at.pool, o.at.node, a.request.PoolClass)
		}
	}
	return nil
}

// elsewhere is the error for nodes of which none has the source.
func (o *origin) elsewhere() error {
	return fail(ErrUnplaceable, "the volume is made from %s, which is on node %s, and can be nowhere else", o.name, o.at.node)
}
