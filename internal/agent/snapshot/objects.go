package snapshot

import (
	"context"

	"berth.dev/berth/api/v1alpha1"
	apply "berth.dev/berth/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/decide/snapshot"
	"berth.dev/berth/internal/provision"
)

// Cluster is Objects on a real API server.
type Cluster struct {
	worker.Of[v1alpha1.Snapshot, *v1alpha1.Snapshot]
}

// NewCluster returns the API server that a cluster is.
func NewCluster(c worker.Cluster) Cluster {
	return Cluster{worker.Of[v1alpha1.Snapshot, *v1alpha1.Snapshot]{Cluster: c}}
}

var _ Objects = Cluster{}

// Volume implements Objects.
func (c Cluster) Volume(ctx context.Context, name string) (*v1alpha1.Volume, error) {
	v := &v1alpha1.Volume{}
	return v, c.Read(ctx, name, v)
}

// Stale returns the names of snapshots that deserve another look after a report of the pools.
func (c Cluster) Stale(ctx context.Context, pools []provision.Pool, recovered bool) ([]string, error) {
	var list v1alpha1.SnapshotList
	if err := c.List(ctx, &list); err != nil {
		return nil, err
	}
	return snapshot.Stale(list.Items, c.Node, pools, recovered), nil
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
