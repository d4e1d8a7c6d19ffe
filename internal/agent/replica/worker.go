package replica

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/replica"
	"berth.dev/berth/internal/provision"
)

// Objects is the API server as this package uses it.
type Objects interface {
	worker.Objects[*v1alpha1.Volume, v1alpha1.ReplicaStatus]
	// Class returns a PoolClass from the watch.
	Class(ctx context.Context, name string) (*v1alpha1.PoolClass, error)
}

// Worker brings the replicas of one node to the state that their Volumes want.
type Worker struct {
	worker.Base
	Objects
	Provisioner provision.Provisioner
	// Format is called for a replica that is ready and still blank. It must not block.
	Format func(r provision.FormatRequest)
	// Mounts are the paths where a volume's device is mounted or bound.
	Mounts func(v provision.Volume) ([]string, error)
}

var _ worker.Kind[*v1alpha1.Volume, v1alpha1.ReplicaStatus, provision.Volume] = (*Worker)(nil)

// Reconcile takes the next step for one volume.
func (w *Worker) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	return worker.Reconcile(ctx, &w.Base, w, r.Name)
}

// What implements worker.Kind.
func (*Worker) What() string { return "volume" }

// Decide implements worker.Kind.
func (w *Worker) Decide(v *v1alpha1.Volume, f replica.Facts) replica.Answer {
	return replica.Decide(v, w.Node, f)
}

// Refusal implements worker.Kind.
func (w *Worker) Refusal(v *v1alpha1.Volume, f replica.Facts, verb decide.Verb, reason, message string) replica.Answer {
	return replica.Refusal(v, w.Node, f, verb, reason, message)
}

// Settled implements worker.Kind.
func (w *Worker) Settled(v *v1alpha1.Volume) bool { return replica.Departed(v, w.Node) }

// Doubt implements worker.Kind.
func (w *Worker) Doubt(v *v1alpha1.Volume) (pool string, doubted bool) {
	return replica.Doubt(v, w.Node)
}

// Says implements worker.Kind.
func (*Worker) Says(e *v1alpha1.ReplicaStatus) (data, gone bool) { return replica.Says(e) }
