package snapshot

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/snapshot"
	"berth.dev/berth/internal/provision"
)

// Objects is the API server as this package uses it.
type Objects interface {
	worker.Objects[*v1alpha1.Snapshot, v1alpha1.SnapshotReplica]
	// Volume reads a volume from the API server.
	Volume(ctx context.Context, name string) (*v1alpha1.Volume, error)
	// Class returns a PoolClass from the watch.
	Class(ctx context.Context, name string) (*v1alpha1.PoolClass, error)
}

// Provisioner is the part of the node's disks that the worker uses; poold.Node is one.
type Provisioner interface {
	provision.Snapshotter
	Get(ctx context.Context, id string) (provision.Volume, error)
}

// Worker brings the snapshots of one node to the state that their objects want.
type Worker struct {
	worker.Base
	Objects
	Provisioner Provisioner
}

var _ worker.Kind[*v1alpha1.Snapshot, v1alpha1.SnapshotReplica, provision.Snapshot] = (*Worker)(nil)

// Reconcile takes the next step for one snapshot.
func (w *Worker) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	return worker.Reconcile(ctx, &w.Base, w, r.Name)
}

// What implements worker.Kind.
func (*Worker) What() string { return "snapshot" }

// Decide implements worker.Kind.
func (w *Worker) Decide(s *v1alpha1.Snapshot, f snapshot.Facts) snapshot.Answer {
	return snapshot.Decide(s, w.Node, f)
}

// Refusal implements worker.Kind.
func (w *Worker) Refusal(s *v1alpha1.Snapshot, f snapshot.Facts, verb decide.Verb, reason, message string) snapshot.Answer {
	return snapshot.Refusal(s, w.Node, f, verb, reason, message)
}

// Settled implements worker.Kind.
func (w *Worker) Settled(s *v1alpha1.Snapshot) bool {
	return w.Decide(s, snapshot.Facts{}).Verb == decide.None
}

// Doubt implements worker.Kind.
func (w *Worker) Doubt(s *v1alpha1.Snapshot) (pool string, doubted bool) {
	return snapshot.Doubt(s, w.Node)
}

// Says implements worker.Kind.
func (*Worker) Says(e *v1alpha1.SnapshotReplica) (data, gone bool) { return snapshot.Says(e) }
