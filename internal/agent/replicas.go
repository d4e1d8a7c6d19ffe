package agent

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/agent/pooled"
	"berth.dev/berth/internal/agent/replica"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/orphan"
	decidereplica "berth.dev/berth/internal/decide/replica"
)

const (
	// workers is how many replicas, and how many snapshots, the agent works on at once. A
	// hanging pool blocks every worker that has work in it until that step times out.
	workers = 8
	// A step that failed is tried again after at least and at most this long.
	minRetry = 100 * time.Millisecond
	maxRetry = 30 * time.Second
)

// runnable is a part that runs once the caches are filled.
type runnable func(ctx context.Context) error

var _ manager.Runnable = runnable(nil)

func (f runnable) Start(ctx context.Context) error { return f(ctx) }

// addReplicas adds the replica worker, its formatter and its sweeper.
func (a *Agent) addReplicas(m ctrl.Manager, poke func()) error {
	formatter := replica.NewFormatter(a.disks, a.owner())
	own := a.options.Driver.View(m.GetClient())
	replicas := &replica.Worker{
		Base:        a.base(m, poke, a.observer.MayHaveVolume, a.orphans),
		Objects:     replica.Cluster{Cluster: worker.NewCluster[v1alpha1.Volume](a.options.Node, own, a.options.Driver.Live(m.GetAPIReader()))},
		Provisioner: a.disks,
		Mounts:      a.options.Mounts,
	}
	replicas.Format = formatter.Enqueue
	if err := m.Add(runnable(formatter.Start)); err != nil {
		return err
	}
	s := &sweeper{
		agent: a, stale: staleOf(a, own, &v1alpha1.VolumeList{}, decidereplica.Kind), object: &v1alpha1.Volume{},
		listed: replicas.Listed, orphans: replicas.Orphans, named: v1alpha1.IsVolumeName,
	}
	return a.addWorker(m, "replicas", replicas, s)
}

// base returns the part that the node's workers have in common. They call poke when there
// is news for the publisher.
func (a *Agent) base(m ctrl.Manager, poke func(), listed func(id string) bool, lost *orphans.Set) worker.Base {
	lost.Notify(poke)
	word := orphans.Word{
		Node: a.options.Node, Watched: m.GetClient(), Live: a.options.Driver.Live(m.GetAPIReader()),
		Retention: a.options.OrphanRetention, Clock: a.options.Clock,
	}
	return worker.Base{
		Node: a.options.Node, Locks: a.locks, Refused: poke, ToolFailed: a.observer.ToolFailed,
		Listed: listed, Deleted: a.observer.Deleted, Pool: a.observer.Pool, Reported: a.observer.HasRead, Orphans: lost, Word: a.word(word), Waived: word.Waived,
	}
}

// word decides on an orphan. One of several copies is not deleted for its age alone: an API server from a backup
// may have forgotten the volume, and the copy may be the only one that has its last writes.
func (a *Agent) word(w orphans.Word) func(ctx context.Context, r orphan.Record) (orphan.Answer, error) {
	return func(ctx context.Context, r orphan.Record) (orphan.Answer, error) {
		answer, err := w.On(ctx, r)
		if err != nil || answer.Verb != decide.Remove || w.Retention == 0 {
			return answer, err
		}
		switch is, err := pooled.IsCopy(ctx, a.disks, r.Name); {
		case err != nil:
			return orphan.Answer{}, fmt.Errorf("finding out whether %s is one of several copies: %w", r.Name, err)
		case !is:
			return answer, nil
		}
		ordered := w
		ordered.Retention = 0
		return ordered.On(ctx, r)
	}
}

// addWorker adds a worker for the objects of a sweeper's kind, with the sweeper.
func (a *Agent) addWorker(m ctrl.Manager, name string, r reconcile.Reconciler, s *sweeper) error {
	swept := make(chan event.GenericEvent)
	s.swept = swept
	if err := m.Add(runnable(s.start)); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(m).
		Named(name).
		For(s.object).
		WatchesRawSource(source.Channel(swept, &handler.EnqueueRequestForObject{})).
		Watches(&v1alpha1.StorageNode{}, handler.EnqueueRequestsFromMapFunc(s.forgotten), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetry, maxRetry),
		}).
		Complete(r)
}
