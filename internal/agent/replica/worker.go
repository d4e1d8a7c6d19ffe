package replica

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide/replica"
	"berth.dev/berth/internal/provision"
)

// Objects is the API server as this package uses it.
type Objects interface {
	worker.Objects[*v1alpha1.Volume, v1alpha1.ReplicaStatus]
	// Snapshot reads a snapshot from the API server.
	Snapshot(ctx context.Context, name string) (*v1alpha1.Snapshot, error)
}

// Worker brings the replicas of one node to the state that their Volumes want.
type Worker struct {
	worker.Base
	Objects
	Provisioner provision.Provisioner
	// Mounts are the paths where a volume's device is mounted or bound.
	Mounts func(v provision.Volume) ([]string, error)
}

// Reconcile takes the next step for one volume.
func (w *Worker) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	return worker.Reconcile(ctx, &w.Base, replica.Kind, w, r.Name)
}
