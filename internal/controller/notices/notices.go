package notices

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/events"
	"berth.dev/berth/internal/decide/notice"
)

// Notices tells of orphans and of pools.
type Notices struct {
	Client client.Client
	Clock  clock.PassiveClock
	// Instance is the name of this process.
	Instance string

	// told holds the names of the events that exist, by StorageNode. It saves
	// requests to the API server. It has no lock since there is one worker.
	told map[string]map[string]bool
}

// SetupWithManager adds the reconciler. It has one worker, which told relies on.
func (r *Notices) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named("orphan").For(&v1alpha1.StorageNode{}).Complete(r)
}

// Reconcile publishes the notices that are due for a StorageNode.
func (r *Notices) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	n := &v1alpha1.StorageNode{}
	if err := r.Client.Get(ctx, request.NamespacedName, n); err != nil {
		if apierrors.IsNotFound(err) {
			delete(r.told, request.Name)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	due, next := notice.Due(n, r.Clock.Now())
	told := map[string]bool{}
	for _, event := range due {
		if !r.told[n.Name][event.Name] {
			if err := r.tell(ctx, n, event); err != nil {
				return ctrl.Result{}, err
			}
		}
		told[event.Name] = true
	}
	if r.told == nil {
		r.told = map[string]map[string]bool{}
	}
	r.told[n.Name] = told
	return ctrl.Result{RequeueAfter: next}, nil
}

func (r *Notices) tell(ctx context.Context, n *v1alpha1.StorageNode, event notice.Notice) error {
	return events.Publish(ctx, r.Client, events.Event{
		Name:  event.Name,
		About: corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "StorageNode", Name: n.Name, UID: n.UID},
		Type:  event.Type, Reason: event.Reason, Action: event.Action, Note: event.Message, At: r.Clock.Now(), Instance: r.Instance,
	})
}
