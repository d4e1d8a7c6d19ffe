package quarantine

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

const (
	// patience is how long Adopt waits until a superseded Volume is gone and its node reports
	// the data as an orphan.
	patience = 30 * time.Second
	// interval is how often Adopt looks for that.
	interval = 200 * time.Millisecond
)

// superseded says whether a Volume may make way for the data on a node: the node itself says
// that the data is not the Volume's, or no client was ever told of the Volume.
func superseded(v *v1alpha1.Volume, node string) bool {
	if v.Spec.Adopted {
		return false
	}
	carved := false
	for i := range v.Status.Replicas {
		carved = carved || v.Status.Replicas[i].HasData()
	}
	if e := v.Entry(node); e != nil && e.State == v1alpha1.ReplicaFailed && e.Reason == v1alpha1.ReasonConflict {
		return !carved
	}
	if v.Wish(node) != nil {
		return false
	}
	return v.Reserved() && v.Found() == "" || !carved && len(v.Spec.Replicas) == 0
}

// standing returns the Volume of that name if it stays; nil if there is none. It deletes one
// that is superseded, and returns it as replaced: the nodes keep data that they cannot prove to
// be its own.
func standing(ctx context.Context, c client.Client, a Adoption, pv *corev1.PersistentVolume) (v, replaced *v1alpha1.Volume, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if v, err = present(ctx, c, a); err != nil || v == nil || !superseded(v, a.Node) || v.DeletionTimestamp != nil {
			return err
		}
		if err := a.foreseen(ctx, c, pv, v); err != nil {
			return err
		}
		return client.IgnoreNotFound(c.Delete(ctx, v, client.Preconditions{UID: &v.UID, ResourceVersion: &v.ResourceVersion}))
	})
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("looking for the object in the way of the data on node %s: %w", a.Node, err)
	case v == nil || !superseded(v, a.Node):
		return v, nil, nil
	}
	return nil, v, gone(ctx, c, a)
}

// foreseen refuses before a superseded Volume is deleted what would be refused afterwards. The
// node may report the data as an orphan only once that Volume is gone. Until then only the data
// itself can be the reason for a refusal.
func (a Adoption) foreseen(ctx context.Context, c client.Reader, pv *corev1.PersistentVolume, superseded *v1alpha1.Volume) error {
	_, err := a.volume(ctx, c, pv, superseded)
	if errors.Is(err, errUnlisted) {
		return nil
	}
	return err
}

// afterwards adds to an error that a Volume was deleted before it, if one was and it does not say so.
func (a Adoption) afterwards(replaced *v1alpha1.Volume, err error) error {
	if replaced == nil || errors.Is(err, ErrUnfinished) {
		return err
	}
	return fmt.Errorf("%w. Volume %s, which had no data on any node, was deleted before that, to make way for the data on node %s: once the reason is gone, repeat the command", err, a.Name, a.Node)
}

// gone waits until there is no Volume any more and the node reports the data as an orphan.
func gone(ctx context.Context, c client.Client, a Adoption) error {
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Name: a.Name}, &v1alpha1.Volume{})
		if !apierrors.IsNotFound(err) {
			return false, err
		}
		_, err = reporting(ctx, c, a.Node, a.Name)
		if errors.Is(err, errUnlisted) {
			return false, nil
		}
		return err == nil, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("%w: Volume %s, which has no data on any node, was deleted to make way for the data on node %s, and that takes long: repeat the command", ErrUnfinished, a.Name, a.Node)
	}
	return err
}
