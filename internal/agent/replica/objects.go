package replica

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
func (c *Cluster) Watched(ctx context.Context, name string) (*v1alpha1.Volume, error) {
	v := &v1alpha1.Volume{}
	return v, c.watched.Get(ctx, client.ObjectKey{Name: name}, v)
}

// Live implements Objects.
func (c *Cluster) Live(ctx context.Context, name string) (*v1alpha1.Volume, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	v := &v1alpha1.Volume{}
	return v, c.live.Get(ctx, client.ObjectKey{Name: name}, v)
}

// Class implements Objects.
func (c *Cluster) Class(ctx context.Context, name string) (*v1alpha1.PoolClass, error) {
	class := &v1alpha1.PoolClass{}
	return class, c.watched.Get(ctx, client.ObjectKey{Name: name}, class)
}

// Report implements Objects. The resourceVersion makes it a compare-and-swap:
// an entry says what was true of the volume as the agent saw it. It is never
// forced: what another manager owns of the entry is not the agent's.
func (c *Cluster) Report(ctx context.Context, v *v1alpha1.Volume, e *v1alpha1.ReplicaStatus) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	body := apply.Volume(v.Name).
		WithResourceVersion(v.ResourceVersion).
		WithStatus(apply.VolumeStatus().WithReplicas(applied(e)))
	return c.watched.Status().Apply(ctx, body, client.FieldOwner(entries.FieldManager(c.node)))
}

// applied is the entry as an apply configuration: what it does not name, the
// API server drops.
func applied(e *v1alpha1.ReplicaStatus) *apply.ReplicaStatusApplyConfiguration {
	a := apply.ReplicaStatus().WithNode(e.Node).WithState(e.State).WithReady(e.Ready)
	a.Pool = entries.Given(e.Pool)
	a.Active = entries.Given(e.Active)
	a.UnstagedEpoch = entries.Given(e.UnstagedEpoch)
	a.Reason = entries.Given(e.Reason)
	a.Message = entries.Given(e.Message)
	a.Capacity = entries.Copied(e.Capacity)
	a.Allocated = entries.Copied(e.Allocated)
	a.Requested = entries.Copied(e.Requested)
	return a
}
