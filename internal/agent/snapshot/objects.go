package snapshot

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	apply "berth.dev/berth/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"berth.dev/berth/internal/agent/entries"
)

// requestTimeout bounds one request to the API server.
const requestTimeout = 15 * time.Second

// Cluster is Objects on a real API server.
type Cluster struct {
	node string
	// watched reads the cache, live the API server.
	watched client.Client
	live    client.Reader
}

var _ Objects = (*Cluster)(nil)

// NewCluster reads watched objects from c and live ones from live.
func NewCluster(node string, c client.Client, live client.Reader) *Cluster {
	return &Cluster{node: node, watched: c, live: live}
}

// Watched implements Objects.
func (c *Cluster) Watched(ctx context.Context, name string) (*v1alpha1.Snapshot, error) {
	s := &v1alpha1.Snapshot{}
	return s, c.watched.Get(ctx, client.ObjectKey{Name: name}, s)
}

// Live implements Objects.
func (c *Cluster) Live(ctx context.Context, name string) (*v1alpha1.Snapshot, error) {
	s := &v1alpha1.Snapshot{}
	return s, c.read(ctx, name, s)
}

// Volume implements Objects.
func (c *Cluster) Volume(ctx context.Context, name string) (*v1alpha1.Volume, error) {
	v := &v1alpha1.Volume{}
	return v, c.read(ctx, name, v)
}

func (c *Cluster) read(ctx context.Context, name string, o client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.live.Get(ctx, client.ObjectKey{Name: name}, o)
}

// Class implements Objects.
func (c *Cluster) Class(ctx context.Context, name string) (*v1alpha1.PoolClass, error) {
	class := &v1alpha1.PoolClass{}
	return class, c.watched.Get(ctx, client.ObjectKey{Name: name}, class)
}

// Report implements Objects. The resourceVersion makes it a compare-and-swap, and it
// is never forced: as for the entries of Volumes.
func (c *Cluster) Report(ctx context.Context, s *v1alpha1.Snapshot, entry *v1alpha1.SnapshotReplica) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	body := apply.Snapshot(s.Name).
		WithResourceVersion(s.ResourceVersion).
		WithStatus(apply.SnapshotStatus().WithReplicas(applied(entry)))
	return c.watched.Status().Apply(ctx, body, client.FieldOwner(entries.FieldManager(c.node)))
}

// applied is the entry as an apply configuration: what it does not name, the API
// server drops.
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
