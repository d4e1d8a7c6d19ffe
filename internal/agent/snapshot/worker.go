package snapshot

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide/snapshot"
	"berth.dev/berth/internal/provision"
)

// Objects is the API server as this package uses it.
type Objects interface {
	worker.Objects[*v1alpha1.Snapshot, v1alpha1.SnapshotReplica]
	// Volume reads a volume from the API server.
	Volume(ctx context.Context, name string) (*v1alpha1.Volume, error)
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

// Reconcile takes the next step for one snapshot.
func (w *Worker) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	return worker.Reconcile(ctx, &w.Base, snapshot.Kind, w, r.Name)
}
