package upkeep

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/usecase"
	"berth.dev/berth/internal/usecase/luns"
)

// lookAgain is the interval at which a deletion that waits for nodes is looked at: no
// event tells that a node is now away.
const lookAgain = 30 * time.Second

// Volumes keeps finalizer, labels, entries and the condition of Volumes.
type Volumes struct {
	Client client.Client
	// Live confirms that a Node is gone: the cache may not have seen a new one.
	Live  client.Reader
	Nodes usecase.Nodes
	// LUNs: the volumes may have LUNs. A Volume that has ended stays until its LUN knows.
	LUNs bool
}

// SetupWithManager adds the reconciler.
func (r *Volumes) SetupWithManager(m ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(m).Named("volume").For(&v1alpha1.Volume{})
	if r.LUNs {
		b = b.Watches(&v1alpha1.LUN{}, handler.EnqueueRequestsFromMapFunc(holderOf))
	}
	return b.Complete(r)
}

// holderOf asks for the Volume that has a LUN.
func holderOf(_ context.Context, o client.Object) []reconcile.Request {
	if l, ok := o.(*v1alpha1.LUN); ok && l.Status.Volume != nil {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: l.Status.Volume.Name}}}
	}
	return nil
}

// Reconcile makes at most one write: the event it causes brings the next.
func (r *Volumes) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	v := &v1alpha1.Volume{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: request.Name}, v); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.tidy(ctx, v); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return ctrl.Result{}, nil // the cache is behind; its next event brings us back
		}
		return ctrl.Result{}, err
	}
	if v.DeletionTimestamp != nil {
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	}
	return ctrl.Result{}, nil
}

func (r *Volumes) tidy(ctx context.Context, v *v1alpha1.Volume) error {
	if awaits, err := r.awaits(ctx, v); awaits || err != nil {
		return err
	}
	gone, err := forgotten(ctx, r.Live, r.Nodes, v)
	if err != nil {
		return err
	}
	if tidyMetadata(v, v1alpha1.VolumeFinalizer, usecase.PlacedVolume(v), r.Nodes, gone) {
		if err := r.Client.Update(ctx, v); err != nil {
			return fmt.Errorf("updating labels and finalizer: %w", err)
		}
		return nil
	}
	if r.tidyStatus(v) {
		if err := r.Client.Status().Update(ctx, v); err != nil {
			return fmt.Errorf("updating status: %w", err)
		}
	}
	return nil
}

// awaits says whether the LUN of a Volume that has ended does not know that yet: its event brings us back. A Volume that
// was never used may have taken its LUN a moment ago, which the cache may not show.
func (r *Volumes) awaits(ctx context.Context, v *v1alpha1.Volume) (bool, error) {
	if !r.LUNs || v.DeletionTimestamp == nil {
		return false, nil
	}
	from := client.Reader(r.Client)
	if luns.Unused(v) {
		from = r.Live
	}
	var list v1alpha1.LUNList
	if err := from.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing LUNs: %w", err)
	}
	return luns.Awaits(v, list.Items), nil
}

// departed says whether a node has nothing of the volume and is not asked to have it.
func departed(v *v1alpha1.Volume, entry *v1alpha1.ReplicaStatus) bool {
	return entry.State == v1alpha1.ReplicaGone && v.Wish(entry.Node) == nil
}

// tidyStatus drops the entries of nodes that have nothing left and shows the problem,
// if any. It runs when tidyMetadata has nothing to do: the label goes before the
// entry, or the node would report Gone again.
func (r *Volumes) tidyStatus(v *v1alpha1.Volume) bool {
	changed := false
	if v.DeletionTimestamp == nil {
		kept := v.Status.Replicas[:0:0]
		for _, entry := range v.Status.Replicas {
			if !departed(v, &entry) {
				kept = append(kept, entry)
			}
		}
		changed = len(kept) != len(v.Status.Replicas)
		v.Status.Replicas = kept
	}
	return show(&v.Status.Conditions, v.Generation, problemOf(v, r.Nodes)) || changed
}
