package agent

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/agent/pooled"
	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/peer"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// Copies is what an agent of pools works with besides its Options where it serves volumes that have copies on
// several nodes.
type Copies struct {
	// Boot is the id of the machine's present boot.
	Boot string
	// Journal outlives the agent.
	Journal journal.Files
	// Guard of the node: no epoch begins without it.
	Guard owner.Guard
	// Holding is how the kernel names a volume to the guard. Cover covers a pod's path from which the agent took a
	// volume by itself.
	Holding func(c provision.Content) (guard.Holding, error)
	Cover   func(path string) error
	// Identity proves this node to others. Listener is where they ask for streams, and Dial reaches them. Pace, if
	// not nil, returns what holds back a stream that leaves this node.
	Identity cert.Identity
	Pace     func(wire.Want) stream.Pacer
	Listener net.Listener
	Dial     func(ctx context.Context, node string) (net.Conn, error)
}

// copies are the volumes of an agent of pools that have copies on several nodes. Beside them the agent serves
// volumes with one copy, and the kind of a volume says which it is: neither side touches the other's. A nil one
// serves none, and adds nothing to the agent.
type copies struct {
	*epochs
	pools    *pooled.Pools
	streams  *pooled.Streams
	listener net.Listener
	objects  *objectsOfCopies
}

// NewReplicated is New for an agent that serves volumes with copies on several nodes, too. What their Owner begins
// in the background ends with ctx, or with Run.
func NewReplicated(ctx context.Context, o Options, c Copies) (*Agent, error) {
	a := New(o)
	streams, err := pooled.NewStreams(c.Identity, c.Pace, c.Dial, o.Log.WithName("streams"))
	if err != nil {
		return nil, fmt.Errorf("setting up streams between nodes: %w", err)
	}
	objects := &objectsOfCopies{node: o.Node}
	pools := pooled.New(pooled.Config{
		Node: o.Node, Disks: a.disks, Report: a.observer, Objects: objects, Mounts: o.Mounts, Clock: o.Clock, Streams: streams,
	})
	e, err := a.newEpochs(ctx, node{
		boot: c.Boot, journal: c.Journal, guard: c.Guard, mounter: a.disks, holding: c.Holding, cover: c.Cover,
	}, owner.Copies(pools))
	if err != nil {
		return nil, err
	}
	a.copies = &copies{epochs: e, pools: pools, streams: streams, listener: c.Listener, objects: objects}
	return a, nil
}

// Copies answers the nodes and controllers that ask this node; nil if the agent serves no volumes with copies on
// several nodes. It may be asked before Run, and after.
func (a *Agent) Copies() peer.Copies {
	if a.copies == nil {
		return nil
	}
	return a.copies.owner
}

// others are the parts that run beside the agent's own. None of them ends the agent: volumes with one copy do not
// need them.
func (c *copies) others() []func(ctx context.Context) error {
	if c == nil {
		return nil
	}
	return []func(ctx context.Context) error{
		func(ctx context.Context) error {
			for ctx.Err() == nil {
				if err := c.tend(ctx); err != nil {
					c.options.Log.Error(err, "volumes with copies on several nodes are not tended, trying again")
					c.pause(ctx, rejoin)
				}
			}
			return nil
		},
		func(ctx context.Context) error {
			if err := c.streams.Serve(ctx, c.listener, c.owner.Stock(c.pools.Stock()), c.objects.owners); err != nil {
				c.options.Log.Error(err, "other nodes get no copies from this one until the agent is restarted")
			}
			return nil
		},
	}
}

// watches adds what the copies need to what the agent watches.
func (c *copies) watches(watched cache.Options) cache.Options {
	if c != nil {
		watchTaints(&watched, c.options.Node)
	}
	return watched
}

// watch has the volumes tended whose objects change, and notes the taints of the Node.
func (c *copies) watch(ctx context.Context, from cache.Cache, own client.Reader) error {
	if c == nil {
		return nil
	}
	c.objects.use(own)
	for object, seen := range map[client.Object]func(object any){&v1alpha1.Volume{}: c.seen, &corev1.Node{}: c.seenNode} {
		informer, err := from.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: seen, UpdateFunc: func(_, now any) { seen(now) }, DeleteFunc: seen,
		}); err != nil {
			return fmt.Errorf("listening to %T: %w", object, err)
		}
	}
	return nil
}

// objectsOfCopies are the API's objects, as the watch of the cluster half shows them.
type objectsOfCopies struct {
	node   string
	reader atomic.Pointer[client.Reader]
}

var _ pooled.Objects = (*objectsOfCopies)(nil)

func (o *objectsOfCopies) use(r client.Reader) { o.reader.Store(&r) }

// get reads an object from the watch. It does not wait for a watch that is not filled.
func (o *objectsOfCopies) get(ctx context.Context, name string, object client.Object) error {
	reader := o.reader.Load()
	if reader == nil {
		return fmt.Errorf("%w: the API server was not reached yet", provision.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, watchPatience)
	defer cancel()
	return (*reader).Get(ctx, client.ObjectKey{Name: name}, object)
}

// Pools implements pooled.Objects.
func (o *objectsOfCopies) Pools(ctx context.Context, volume string) (names []string, err error) {
	v := &v1alpha1.Volume{}
	err = o.get(ctx, volume, v)
	if err == nil {
		if wish := v.Wish(o.node); wish != nil {
			return []string{wish.Pool}, nil
		}
	} else if !apierrors.IsNotFound(err) {
		return nil, err
	}
	self := &v1alpha1.StorageNode{}
	if err := o.get(ctx, o.node, self); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	for _, p := range self.Status.Pools {
		names = append(names, p.Name)
	}
	return names, nil
}

// owners is a pooled.Owners.
func (o *objectsOfCopies) owners(ctx context.Context, volume string) []string {
	v := &v1alpha1.Volume{}
	if err := o.get(ctx, volume, v); err != nil {
		return nil // the stream is worth less for a while, and is sent
	}
	return v.Status.Ownership.Owners()
}

// ClassOf implements pooled.Objects.
func (o *objectsOfCopies) ClassOf(ctx context.Context, volume string) (*v1alpha1.PoolClass, error) {
	v := &v1alpha1.Volume{}
	if err := o.get(ctx, volume, v); err != nil {
		return nil, err
	}
	return o.Class(ctx, v.Spec.PoolClass)
}

// Class implements pooled.Objects.
func (o *objectsOfCopies) Class(ctx context.Context, name string) (*v1alpha1.PoolClass, error) {
	class := &v1alpha1.PoolClass{}
	return class, o.get(ctx, name, class)
}
