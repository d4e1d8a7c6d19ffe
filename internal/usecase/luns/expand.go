package luns

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/quantity"
	"berth.dev/berth/internal/usecase"
	"berth.dev/berth/internal/usecase/volumes"
)

// Expand lets a volume be as large as its disk has become, and returns it. The size of the disk is that of its
// LUN, which an administrator has changed after growing the disk on its target. A disk that no LUN names is
// believed to have grown: the node that uses it compares. A size that the disk does not have is
// usecase.ErrOutOfRange.
func (s *Service) Expand(ctx context.Context, id string, size volumes.Size) (volumes.Volume, error) {
	if err := size.Check(); err != nil {
		return volumes.Volume{}, err
	}
	unlock, err := s.objects.Lock(id)
	if err != nil {
		return volumes.Volume{}, err
	}
	defer unlock()
	for {
		v, err := s.objects.Get(ctx, id)
		switch {
		case err != nil:
			return volumes.Volume{}, err
		case v == nil || v.DeletionTimestamp != nil || !v1alpha1.IsVolumeName(id):
			return volumes.Volume{}, usecase.Fail(provision.ErrNotFound, "volume %s does not exist", id)
		}
		luns, _, err := s.declared(ctx)
		if err != nil {
			return volumes.Volume{}, err
		}
		bytes, err := target(v, luns, size)
		if err != nil {
			return volumes.Volume{}, err
		}
		if bytes == v.Spec.Capacity.Value() {
			return volumes.View(v), nil
		}
		v = v.DeepCopy()
		v.Spec.Capacity = *resource.NewQuantity(bytes, resource.BinarySI)
		switch err := s.client.Update(ctx, v); {
		case err == nil:
			return volumes.View(v), nil
		case !apierrors.IsConflict(err):
			return volumes.Volume{}, fmt.Errorf("expanding volume %s: %w", id, err)
		}
	}
}

// target is the capacity that a volume gets.
func target(v *v1alpha1.Volume, luns []v1alpha1.LUN, size volumes.Size) (int64, error) {
	have := v.Spec.Capacity.Value()
	switch {
	case diskOf(v) == nil:
		return 0, usecase.Fail(provision.ErrUnavailable, "volume %s has no disk yet", v.Name)
	case size.Limit > 0 && have > size.Limit:
		return 0, usecase.Fail(usecase.ErrOutOfRange, "volume %s has %s already, more than the limit of %s, and cannot shrink",
			v.Name, quantity.Bytes(have), quantity.Bytes(size.Limit))
	case have >= size.Required:
		return have, nil
	}
	for i := range luns {
		l := &luns[i]
		if !l.Has(v) {
			continue
		}
		switch of := l.Spec.Capacity.Value(); {
		case of < size.Required:
			return 0, usecase.Fail(usecase.ErrOutOfRange, "LUN %s has %s: grow the disk on its target, and then write its new size into spec.capacity of the LUN",
				l.Name, quantity.Bytes(of))
		case size.Limit > 0 && of > size.Limit:
			return 0, usecase.Fail(usecase.ErrOutOfRange, "LUN %s has %s, more than the limit of %s", l.Name, quantity.Bytes(of), quantity.Bytes(size.Limit))
		default:
			return of, nil
		}
	}
	return size.Required, nil
}
