package luns

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/storageclass"
	"berth.dev/berth/internal/usecase"
	"berth.dev/berth/internal/usecase/volumes"
)

// Create makes a volume, or finishes making it, and returns it once it has its disk. A repeated call returns
// the volume. A different request under the same name is provision.ErrConflict. If no LUN will do, the error
// is usecase.ErrUnplaceable, and no LUN is taken.
func (s *Service) Create(ctx context.Context, r volumes.Request) (volumes.Volume, error) {
	r, bytes, err := settled(r)
	if err != nil {
		return volumes.Volume{}, err
	}
	c := &call{Service: s, request: r, name: v1alpha1.VolumeName(r.Name), wish: wish{r.PoolClass, bytes, r.Size.Limit, r.Sharing() == v1alpha1.Shared}}
	unlock, err := s.objects.Lock(c.name)
	if err != nil {
		return volumes.Volume{}, err
	}
	defer unlock()
	if err := c.hopeless(ctx); err != nil {
		return volumes.Volume{}, err
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return volumes.Volume{}, fmt.Errorf("waiting for calls that choose LUNs: %w", ctx.Err())
	}
	for {
		v, again, err := c.step(ctx)
		switch {
		case err != nil:
			return volumes.Volume{}, err
		case !again:
			return volumes.View(v), nil
		}
	}
}

// hopeless is the error where no LUN will do by the cache. A claim without a LUN asks twice a minute for as long as
// it lasts. The cache may lag: then the next call finds the LUN.
func (c *call) hopeless(ctx context.Context) error {
	v, err := c.find(ctx)
	if err != nil || v != nil && diskOf(v) != nil {
		return err
	}
	luns, all, err := list(ctx, c.client)
	if err != nil || v != nil && slices.ContainsFunc(luns, func(l v1alpha1.LUN) bool { return l.Has(v) }) {
		return err
	}
	if l, shortage := choose(c.wish, luns, all); l == nil {
		return usecase.Fail(usecase.ErrUnplaceable, "%s", shortage)
	}
	return nil
}

// find reads the Volume, nil if there is none, and checks it.
func (c *call) find(ctx context.Context) (*v1alpha1.Volume, error) {
	v, err := c.objects.Get(ctx, c.name)
	if v == nil || err != nil {
		return nil, err
	}
	return v, c.check(v)
}

// settled is the request with the filesystem that it leaves open, and its size in bytes.
func settled(r volumes.Request) (volumes.Request, int64, error) {
	switch {
	case r.Source != nil:
		return r, 0, usecase.Fail(provision.ErrInvalid, "a volume of a shared disk begins blank: it is no copy of a snapshot or of another volume")
	case r.Attachments == nil:
		return r, 0, usecase.Fail(provision.ErrInvalid, "the request does not say how the disk is shared")
	case r.Mode == v1alpha1.Filesystem:
		r.FSType = cmp.Or(r.FSType, storageclass.DefaultFSType)
		if r.FSType != v1alpha1.Ext4 && r.FSType != v1alpha1.XFS {
			return r, 0, storageclass.Invalid("filesystem %s is part of a pool: a shared disk has %s or %s", r.FSType, v1alpha1.Ext4, v1alpha1.XFS)
		}
	}
	bytes, err := r.Bytes()
	return r, bytes, err
}

// call is what one call of Create knows.
type call struct {
	*Service
	request volumes.Request
	name    string
	wish    wish
	// taken is the LUN that this call has taken last, as it was written.
	taken *v1alpha1.LUN
}

// step takes the next of the three writes. again says that there is more to do, also because another process
// has written first.
func (c *call) step(ctx context.Context) (v *v1alpha1.Volume, again bool, err error) {
	v, err = c.find(ctx)
	switch {
	case c.inVain(v, err):
		return nil, true, c.giveBack(ctx, c.taken)
	case err != nil, v != nil && diskOf(v) != nil:
		return v, false, err
	}
	luns, all, err := c.declared(ctx)
	if err != nil {
		return nil, false, err
	}
	if v == nil {
		if l, shortage := choose(c.wish, luns, all); l == nil {
			return nil, false, usecase.Fail(usecase.ErrUnplaceable, "%s", shortage)
		}
		err := c.client.Create(ctx, c.object())
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, false, fmt.Errorf("creating volume %s: %w", c.name, err)
		}
		return nil, true, nil
	}
	if i := slices.IndexFunc(luns, func(l v1alpha1.LUN) bool { return l.Has(v) && !over(&l) }); i >= 0 {
		return c.settle(ctx, v, &luns[i], all)
	}
	l, shortage := choose(c.wish, luns, all)
	if l == nil {
		return nil, false, usecase.Fail(usecase.ErrUnplaceable, "%s", shortage)
	}
	return nil, true, c.take(ctx, v, l)
}

// check refuses a Volume that is not the one that is asked for.
func (c *call) check(v *v1alpha1.Volume) error {
	if v.DeletionTimestamp != nil {
		return usecase.Fail(usecase.ErrBusy, "volume %s is being deleted", c.name)
	}
	d := volumes.Difference(&v.Spec, c.request)
	if a, want := v.Spec.Replication.Attachments, c.request.Attachments; d == "" {
		switch {
		case a == nil:
			d = "it is no shared disk"
		case a.MaxShares != want.MaxShares || v.Spec.Replication.Factor != want.Factor || a.Yields != want.Yields:
			d = "its disk is shared in another way"
		case a.CheckFilesystem != want.Check:
			d = "its filesystem is checked in another way (spec.replication.attachments.checkFilesystem)"
		case failsOver(v) && want.OnDemand:
			d = "it fails over by itself (spec.replication.failover.automatic)"
		case !failsOver(v) && !want.OnDemand:
			d = "it does not fail over by itself (spec.replication.failover.automatic)"
		}
	}
	switch {
	case d == "":
		return nil
	case diskOf(v) == nil:
		d += "; it has no disk yet, and no data: delete the Volume"
	}
	return usecase.Fail(provision.ErrConflict, "volume %s exists, and is not as requested: %s", c.name, d)
}

// failsOver says whether the volume fails over without a person.
func failsOver(v *v1alpha1.Volume) bool {
	f := v.Spec.Replication.Failover
	return f != nil && f.Automatic
}

// object is the first write.
func (c *call) object() *v1alpha1.Volume {
	r := c.request
	v := &v1alpha1.Volume{Spec: v1alpha1.VolumeSpec{
		Capacity:    *resource.NewQuantity(c.wish.bytes, resource.BinarySI),
		VolumeMode:  r.Mode,
		FSType:      r.FSType,
		MkfsOptions: r.MkfsOptions,
		PoolClass:   r.PoolClass,
		ClaimRef:    r.Claim,
		Sharing:     r.Sharing(),
		Placement:   v1alpha1.PlacementVolume,
		Replication: v1alpha1.Replication{
			Factor: r.Attachments.Factor, Kind: v1alpha1.ReplicationAttachments,
			Failover:    &v1alpha1.Failover{Automatic: !r.Attachments.OnDemand},
			Attachments: &v1alpha1.Attachments{MaxShares: r.Attachments.MaxShares, Yields: r.Attachments.Yields, CheckFilesystem: r.Attachments.Check, Blank: true},
		},
	}}
	v.Name, v.Finalizers = c.name, []string{v1alpha1.VolumeFinalizer}
	return v
}

// take is the second write. The finalizer comes before it, and stays while the volume has the LUN.
func (c *call) take(ctx context.Context, v *v1alpha1.Volume, l *v1alpha1.LUN) error {
	l = l.DeepCopy()
	if controllerutil.AddFinalizer(l, v1alpha1.LUNFinalizer) {
		if err := c.client.Update(ctx, l); err != nil {
			return lost(err, "keeping LUN %s for volume %s", l.Name, c.name)
		}
	}
	l.Status = v1alpha1.LUNStatus{State: v1alpha1.LUNBound, Volume: &v1alpha1.LUNVolume{Name: v.Name, UID: v.UID}}
	err := c.client.Status().Update(ctx, l)
	if err == nil {
		c.taken = l
	}
	return lost(err, "giving LUN %s to volume %s", l.Name, c.name)
}

// inVain says whether the call has taken a LUN for a Volume that was deleted since, by what was found of that.
func (c *call) inVain(v *v1alpha1.Volume, err error) bool {
	if v == nil {
		return c.taken != nil && err == nil
	}
	return c.taken != nil && (!c.taken.Has(v) || Unused(v))
}

// giveBack ends that a Volume has a LUN which it will never use: it was deleted meanwhile, or may not have the disk. If
// the Volume has got the disk after all, its end has changed the LUN, and this write is refused.
func (c *call) giveBack(ctx context.Context, l *v1alpha1.LUN) error {
	c.taken = nil
	l.Status = v1alpha1.LUNStatus{}
	return lost(c.client.Status().Update(ctx, l), "giving LUN %s back", l.Name)
}

// settle is the third write, unless another Volume names the disk: then the LUN is given back, and its
// reconciler finds that Volume.
func (c *call) settle(ctx context.Context, v *v1alpha1.Volume, l *v1alpha1.LUN, all []v1alpha1.Volume) (*v1alpha1.Volume, bool, error) {
	if namedBy(l, all) != nil {
		return nil, true, c.giveBack(ctx, l)
	}
	v = v.DeepCopy()
	a := v.Spec.Replication.Attachments
	a.Disk, a.Persistent = &l.Spec.Disk, l.Spec.Persistent
	v.Spec.Capacity = l.Spec.Capacity
	if err := c.client.Update(ctx, v); err != nil {
		return nil, true, lost(err, "giving volume %s the disk of LUN %s", c.name, l.Name)
	}
	return v, false, nil
}

// lost is nil where another process has written first: the next step begins with what that has left.
func lost(err error, format string, args ...any) error {
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
