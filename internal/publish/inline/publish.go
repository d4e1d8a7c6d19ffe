package inline

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// PublishRequest asks for an inline volume at a pod's target path.
type PublishRequest struct {
	// Handle is the kubelet's id of the volume.
	Handle, Target string
	// The pod that the volume is for.
	PodUID, PodNamespace, PodName string
	// The wishes of the pod's spec.
	Class string
	Size  int64
	// Filesystem, or empty for the one that the pools of the class have by default.
	Filesystem string
	// MkfsOptions that the filesystem is made with.
	MkfsOptions string
	// Options of the mount.
	Options  []string
	ReadOnly bool
}

// Publish makes the volume, if it was never handed to its pod, and mounts it at
// the target.
func (s *Service) Publish(ctx context.Context, r PublishRequest) error {
	v, err := s.identify(r.Handle, r.Target)
	if err != nil {
		return err
	}
	if err := r.check(v); err != nil {
		return err
	}
	end, err := s.begin(ctx, v)
	if err != nil {
		return err
	}
	defer end()
	record, err := s.made(ctx, v, r)
	if err != nil {
		return err
	}
	if err := s.marks.Set(v.mark()); err != nil {
		return err
	}
	if err := s.disks.Mount(ctx, mount.Request{
		Content: record.Content, Target: r.Target,
		Filesystem: record.Filesystem, Options: r.Options, ReadOnly: r.ReadOnly,
	}); err != nil {
		return fmt.Errorf("mounting %s: %w", v, err)
	}
	return nil
}

// check refuses a volume that can never be made, before anything is made.
func (r PublishRequest) check(v volume) error {
	if r.PodUID != v.owner.PodUID {
		return fmt.Errorf("%w: the target is pod %.64s's, the request is for pod %.64s", provision.ErrInvalid, v.owner.PodUID, r.PodUID)
	}
	if r.Filesystem == "" {
		return nil
	}
	return r.fits(r.Filesystem)
}

// fits refuses a size or options that a filesystem cannot have.
func (r PublishRequest) fits(filesystem string) error {
	if least := provision.MinSize(filesystem); r.Size < least {
		return fmt.Errorf("%w: a volume with %s needs at least %dMi", provision.ErrInvalid, filesystem, least>>20)
	}
	return mount.CheckOptions(filesystem, r.Options)
}

// made returns the record of the volume, with its filesystem.
func (s *Service) made(ctx context.Context, v volume, r PublishRequest) (provision.Volume, error) {
	marked, err := s.marks.Has(v.mark())
	if err != nil {
		return provision.Volume{}, err
	}
	find := s.create
	if marked {
		find = s.kept
	}
	record, err := find(ctx, v, r)
	if err != nil {
		return provision.Volume{}, err
	}
	if err := v.check(record); err != nil {
		return provision.Volume{}, err
	}
	// The volume may have been made when the class had another default.
	filesystem := cmp.Or(r.Filesystem, record.Filesystem, record.Content.Tree, provision.Ext4)
	if err := r.fits(filesystem); err != nil {
		return provision.Volume{}, err
	}
	// Format returns at once where it was done already.
	record, err = s.disks.Format(ctx, provision.FormatRequest{ID: v.id, Filesystem: filesystem, Options: r.MkfsOptions})
	if err != nil {
		return provision.Volume{}, fmt.Errorf("making filesystem on %s: %w", v, err)
	}
	return record, nil
}

// kept returns the record of a volume that was handed to its pod. A blank volume was not:
// it only bears the id.
func (s *Service) kept(ctx context.Context, v volume, _ PublishRequest) (provision.Volume, error) {
	record, err := s.disks.Get(ctx, v.id)
	if errors.Is(err, provision.ErrNotFound) || err == nil && record.Filesystem == "" {
		return provision.Volume{}, fmt.Errorf("%w: %s was in use and its data is not on this node any more; "+
			"it is not made again empty: bring its disk back, or delete the pod", provision.ErrNotFound, v)
	}
	if err != nil {
		return provision.Volume{}, fmt.Errorf("looking up %s: %w", v, err)
	}
	return record, nil
}

// create carves a volume that was never handed to its pod, if its class allows that
// now. A volume that was handed out stays its pod's if the class changes later. create does
// not look first whether there is one: a provisioner may have to start a process to be sure
// that there is none, and Create finds the volume of an earlier try.
func (s *Service) create(ctx context.Context, v volume, r PublishRequest) (provision.Volume, error) {
	offers, err := s.rank(ctx, r.Class, r.PodNamespace)
	if err != nil {
		return provision.Volume{}, err
	}
	if r.Filesystem == "" {
		r.Filesystem = provision.TraitsOf(offers[0].request.Pool.Type).Default() // a class has pools of one type
		if err := r.fits(r.Filesystem); err != nil {
			return provision.Volume{}, err
		}
	}
	record, err := s.carve(ctx, v, r, offers)
	if errors.Is(err, provision.ErrConflict) { // the earlier try chose another pool
		record, err = s.disks.Get(ctx, v.id)
	}
	if err != nil {
		return provision.Volume{}, fmt.Errorf("creating %s: %w", v, err)
	}
	return record, nil
}

// carve takes the first pool that has room. If none has, it fails with the error of the best
// one.
func (s *Service) carve(ctx context.Context, v volume, r PublishRequest, offers []offer) (provision.Volume, error) {
	var best error
	for _, o := range offers {
		request := o.request
		request.ID, request.Size, request.Labels, request.Inline = v.id, r.Size, r.labels(), v.owner
		request.Tree = provision.ByItself(r.Filesystem)
		record, err := s.disks.Create(ctx, request)
		if err == nil {
			return record, nil
		}
		if !errors.Is(err, provision.ErrNoSpace) && !errors.Is(err, provision.ErrPoolMissing) {
			return provision.Volume{}, err // it may have been made
		}
		if best == nil {
			best = err
		}
	}
	return provision.Volume{}, best
}

// labels returns labels for people who list logical volumes.
func (r PublishRequest) labels() map[string]string {
	return map[string]string{"namespace": r.PodNamespace, "pod": r.PodName}
}
