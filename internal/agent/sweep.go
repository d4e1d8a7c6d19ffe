package agent

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/decide/placed"
	"berth.dev/berth/internal/provision"
)

const (
	// sweepInterval is the least time between two sweeps.
	sweepInterval = time.Second
	// inlineSweepTimeout bounds one sweep of inline volumes, so that a hanging pool does not
	// hold up the next sweep for ever.
	inlineSweepTimeout = time.Minute
	// orphanInterval is how often a known orphan is looked at again.
	orphanInterval = 10 * time.Minute
)

// sweeper enqueues the volumes, or the snapshots, that need another look after each report
// of the pools.
type sweeper struct {
	agent *Agent
	// stale returns the names of those objects; recovered says that the previous report failed.
	stale func(ctx context.Context, pools []provision.Pool, recovered bool) ([]string, error)
	// listed says whether the latest report may have data of that name.
	listed  func(id string) bool
	orphans *orphans.Set
	// object is an empty one of the sweeper's kind.
	object client.Object
	// named says whether a name has the form of the sweeper's kind.
	named func(name string) bool
	swept chan<- event.GenericEvent

	failed      bool      // the latest report failed
	orphansSeen time.Time // zero at first: the first sweep looks at the inherited orphans
}

// staleOf returns the function that lists the objects of a kind in an empty list, and says which are
// stale.
func staleOf[O placed.Object[E], E, R any](a *Agent, reader client.Reader, list client.ObjectList, k placed.Kind[O, E, R]) func(context.Context, []provision.Pool, bool) ([]string, error) {
	return func(ctx context.Context, pools []provision.Pool, recovered bool) ([]string, error) {
		all := list.DeepCopyObject().(client.ObjectList)
		if err := reader.List(ctx, all); err != nil {
			return nil, err
		}
		var objects []O
		err := meta.EachListItem(all, func(o runtime.Object) error {
			objects = append(objects, o.(O))
			return nil
		})
		return k.Stale(objects, a.options.Node, pools, recovered), err
	}
}

// start sweeps until ctx ends.
func (s *sweeper) start(ctx context.Context) error {
	reports, done := s.agent.observer.Subscribe()
	defer done()
	for {
		if snapshot := s.agent.observer.Latest(); snapshot.Err != nil {
			s.failed = true // a report that failed proves no loss
		} else if err := s.sweep(ctx, snapshot.Pools); err != nil {
			return err
		}
		s.agent.pause(ctx, sweepInterval)
		select {
		case <-ctx.Done():
			return nil
		case <-reports:
		}
	}
}

func (s *sweeper) sweep(ctx context.Context, pools []provision.Pool) error {
	stale, err := s.stale(ctx, pools, s.failed)
	if err != nil {
		return err
	}
	s.failed = false
	known := s.orphans.All()
	orphansToo := s.orphansDue()
	for _, name := range stale {
		if _, orphan := known[name]; !orphan || orphansToo {
			s.send(ctx, name)
		}
	}
	for name := range known {
		if !s.listed(name) {
			s.orphans.Forget(name)
		}
	}
	return nil
}

func (s *sweeper) send(ctx context.Context, name string) {
	o := s.object.DeepCopyObject().(client.Object)
	o.SetName(name)
	select {
	case <-ctx.Done():
	case s.swept <- event.GenericEvent{Object: o}:
	}
}

// forgotten returns requests for the names of the sweeper's kind in a StorageNode's
// spec.forget: orphans, and objects whose data is lost with its pool.
func (s *sweeper) forgotten(_ context.Context, o client.Object) []reconcile.Request {
	node, ok := o.(*v1alpha1.StorageNode)
	if !ok {
		return nil
	}
	var named []reconcile.Request
	for _, f := range node.Spec.Forget {
		if s.named(f.Name) {
			named = append(named, reconcile.Request{NamespacedName: types.NamespacedName{Name: f.Name}})
		}
	}
	return named
}

func (s *sweeper) orphansDue() bool {
	now := s.agent.options.Clock.Now()
	due := now.Sub(s.orphansSeen) >= orphanInterval
	if due {
		s.orphansSeen = now
	}
	return due
}
