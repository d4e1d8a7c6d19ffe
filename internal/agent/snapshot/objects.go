package snapshot

import (
	"context"

	"berth.dev/berth/api/v1alpha1"
	apply "berth.dev/berth/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide/entries"
)

// Cluster is Objects on a real API server.
type Cluster struct {
	worker.Cluster[v1alpha1.Snapshot, *v1alpha1.Snapshot]
}

var _ Objects = Cluster{}

// Volume implements Objects.
func (c Cluster) Volume(ctx context.Context, name string) (*v1alpha1.Volume, error) {
	v := &v1alpha1.Volume{}
	return v, c.Read(ctx, name, v)
}

// Report implements Objects.
func (c Cluster) Report(ctx context.Context, s *v1alpha1.Snapshot, e *v1alpha1.SnapshotReplica) error {
	return c.Apply(ctx, apply.Snapshot(s.Name).
		WithResourceVersion(s.ResourceVersion).
		WithStatus(apply.SnapshotStatus().WithReplicas(applied(e))))
}

// applied returns the entry as an apply configuration: the API server drops the fields that
// it does not name.
func applied(e *v1alpha1.SnapshotReplica) *apply.SnapshotReplicaApplyConfiguration {
	a := apply.SnapshotReplica().WithNode(e.Node).WithState(e.State)
	a.Pool = entries.Given(e.Pool)
	a.Taken = e.Taken.DeepCopy()
	a.RestoreSize = entries.Copied(e.RestoreSize)
	a.Allocated = entries.Copied(e.Allocated)
	a.Reason = entries.Given(e.Reason)
	a.Message = entries.Given(e.Message)
	return a
}
