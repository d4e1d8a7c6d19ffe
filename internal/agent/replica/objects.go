package replica

import (
	"context"

	"berth.dev/berth/api/v1alpha1"
	apply "berth.dev/berth/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide/entries"
)

// Cluster is Objects on a real API server.
type Cluster struct {
	worker.Cluster[v1alpha1.Volume, *v1alpha1.Volume]
}

var _ Objects = Cluster{}

// Snapshot implements Objects.
func (c Cluster) Snapshot(ctx context.Context, name string) (*v1alpha1.Snapshot, error) {
	s := &v1alpha1.Snapshot{}
	return s, c.Read(ctx, name, s)
}

// Report implements Objects.
func (c Cluster) Report(ctx context.Context, v *v1alpha1.Volume, e *v1alpha1.ReplicaStatus) error {
	return c.Apply(ctx, apply.Volume(v.Name).
		WithResourceVersion(v.ResourceVersion).
		WithStatus(apply.VolumeStatus().WithReplicas(applied(e))))
}

// applied returns the entry as an apply configuration: the API server drops the
// fields that it does not name.
func applied(e *v1alpha1.ReplicaStatus) *apply.ReplicaStatusApplyConfiguration {
	a := apply.ReplicaStatus().WithNode(e.Node).WithState(e.State).WithReady(e.Ready)
	a.Pool = entries.Given(e.Pool)
	a.Reason = entries.Given(e.Reason)
	a.Message = entries.Given(e.Message)
	a.Capacity = entries.Copied(e.Capacity)
	a.Allocated = entries.Copied(e.Allocated)
	a.Requested = entries.Copied(e.Requested)
	return a
}
