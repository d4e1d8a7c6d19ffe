package worker

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/decide/entries"
)

type object[T any] interface {
	*T
	client.Object
}

// Cluster is a real API server, as a worker on objects of type T uses it.
type Cluster[T any, O object[T]] struct {
	node string
	// watched reads the cache, live the API server.
	watched client.Client
	live    client.Reader
}

// NewCluster reads watched objects from c and live ones from live.
func NewCluster[T any, O object[T]](node string, c client.Client, live client.Reader) Cluster[T, O] {
	return Cluster[T, O]{node: node, watched: c, live: live}
}

// Get reads an object from the watch; it may be stale.
func (c Cluster[T, O]) Get(ctx context.Context, name string, o client.Object) error {
	return c.watched.Get(ctx, client.ObjectKey{Name: name}, o)
}

// Read reads an object from the API server.
func (c Cluster[T, O]) Read(ctx context.Context, name string, o client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, orphans.RequestTimeout)
	defer cancel()
	return c.live.Get(ctx, client.ObjectKey{Name: name}, o)
}

// Watched implements Objects.
func (c Cluster[T, O]) Watched(ctx context.Context, name string) (O, error) {
	o := O(new(T))
	return o, c.Get(ctx, name, o)
}

// Live implements Objects.
func (c Cluster[T, O]) Live(ctx context.Context, name string) (O, error) {
	o := O(new(T))
	return o, c.Read(ctx, name, o)
}

// Class returns a PoolClass from the watch.
func (c Cluster[T, O]) Class(ctx context.Context, name string) (*v1alpha1.PoolClass, error) {
	class := &v1alpha1.PoolClass{}
	return class, c.Get(ctx, name, class)
}

// Apply applies the node's entry. The resourceVersion in the body makes it a
// compare-and-swap: an entry holds for the object as the agent saw it. It is never forced:
// the agent must not take over fields of the entry that another manager owns.
func (c Cluster[T, O]) Apply(ctx context.Context, body runtime.ApplyConfiguration) error {
	ctx, cancel := context.WithTimeout(ctx, orphans.RequestTimeout)
	defer cancel()
	return c.watched.Status().Apply(ctx, body, client.FieldOwner(entries.FieldManager(c.node)))
}
