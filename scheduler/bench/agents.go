package main

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	apply "berth.dev/berth/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

// publishing is the form in which nodes publish their free space.
type publishing int

const (
	byCapacity   publishing = iota // CSIStorageCapacity
	byAnnotation                   // an annotation of the Node
)

// agents answer for all nodes: volumes are carved in no time, out of pools that are
// numbers, and every answer publishes the space that remains free.
type agents struct {
	ctx context.Context //nolint:containedctx // the handlers of informers have none
	*server
	failed func(error)

	mu      sync.Mutex
	publish publishing
	used    map[string]int64   // by node
	volumes map[string]*carved // by name
}

// carved is the state of a volume. fits may be read once answered is closed.
type carved struct {
	seen     *v1alpha1.Volume // as it was last
	node     string
	bytes    int64
	fits     bool
	answered chan struct{}
}

func newAgents(ctx context.Context, s *server, failed func(error)) *agents {
	return &agents{ctx: ctx, server: s, failed: failed, used: map[string]int64{}, volumes: map[string]*carved{}}
}

// handler handles the events of the informer of Volumes.
func (a *agents) handler() toolscache.ResourceEventHandler {
	seen := func(obj any) {
		v, ok := obj.(*v1alpha1.Volume)
		if !ok || v.DeletionTimestamp != nil || len(v.Spec.Replicas) == 0 {
			return
		}
		a.note(v)
		if len(v.Status.Replicas) == 0 {
			a.begin(v)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    seen,
		UpdateFunc: func(_, obj any) { seen(obj) },
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			if v, ok := obj.(*v1alpha1.Volume); ok {
				a.free(v)
			}
		},
	}
}

// begin carves a volume and answers, unless that was begun.
func (a *agents) begin(v *v1alpha1.Volume) *carved {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.volumes[v.Name]; c != nil && c.seen.UID == v.UID {
		return c
	}
	c := &carved{seen: v, node: v.Spec.Replicas[0].Node, bytes: v.Spec.Capacity.Value(), answered: make(chan struct{})}
	a.volumes[v.Name] = c
	if c.fits = a.used[c.node]+c.bytes <= room; c.fits {
		a.used[c.node] += c.bytes
	}
	free, form := room-a.used[c.node], a.publish
	go func() {
		if err := a.answer(v, c); err != nil {
			a.failed(err)
			return
		}
		close(c.answered)
		if err := a.say(c.node, free, form); err != nil {
			a.failed(err)
		}
	}()
	return c
}

// note keeps the volume as it is now.
func (a *agents) note(v *v1alpha1.Volume) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.volumes[v.Name]; c != nil && c.seen.UID == v.UID {
		c.seen = v
	}
}

// latest is a copy of the volume as it was last seen.
func (a *agents) latest(c *carved) *v1alpha1.Volume {
	a.mu.Lock()
	defer a.mu.Unlock()
	return c.seen.DeepCopy()
}

// answer applies the status that an agent would.
func (a *agents) answer(v *v1alpha1.Volume, c *carved) error {
	entry := apply.ReplicaStatus().WithNode(c.node).WithPool(v.Spec.Replicas[0].Pool).WithRequested(v.Spec.Capacity)
	if c.fits {
		entry = entry.WithState(v1alpha1.ReplicaReady).WithReady(true).WithReason(v1alpha1.ReasonCarved).WithCapacity(v.Spec.Capacity)
	} else {
		entry = entry.WithState(v1alpha1.ReplicaFailed).WithReady(false).WithReason(v1alpha1.ReasonNoSpace).WithMessage("no room on node " + c.node)
	}
	body := apply.Volume(v.Name).WithStatus(apply.VolumeStatus().WithReplicas(entry))
	if err := a.berth.Status().Apply(a.ctx, body, client.FieldOwner("agent-"+c.node)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("answering volume %s: %w", v.Name, err)
	}
	return nil
}

// free gives back the room of a volume that is gone.
func (a *agents) free(v *v1alpha1.Volume) {
	if c := a.find(v.Name); c != nil && c.seen.UID == v.UID {
		a.forget(v.Name)
	}
}

// forget removes a volume, and gives its room back.
func (a *agents) forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.volumes[name]
	if c == nil {
		return
	}
	if c.fits {
		a.used[c.node] -= c.bytes
	}
	delete(a.volumes, name)
}

// say publishes the free space of a node.
func (a *agents) say(node string, free int64, form publishing) error {
	var err error
	switch form {
	case byCapacity:
		body := fmt.Appendf(nil, `{"capacity":"%d","maximumVolumeSize":"%d"}`, free, free)
		_, err = a.core.StorageV1().CSIStorageCapacities(berthNamespace).Patch(a.ctx, node, types.MergePatchType, body, metav1.PatchOptions{})
	case byAnnotation:
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, capacityAnnotation, free)
		_, err = a.core.CoreV1().Nodes().Patch(a.ctx, node, types.MergePatchType, body, metav1.PatchOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("publishing what node %s has free: %w", node, err)
	}
	return nil
}

// find is the state of a volume, or nil if there is none.
func (a *agents) find(name string) *carved {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.volumes[name]
}

// count is the number of volumes there are.
func (a *agents) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.volumes)
}

// reset begins anew with another form: every node that a volume was on is free
// again, and says so in both forms.
func (a *agents) reset(form publishing) error {
	a.mu.Lock()
	touched := a.used
	a.used, a.publish = map[string]int64{}, form
	a.mu.Unlock()
	for node := range touched {
		for _, each := range []publishing{byCapacity, byAnnotation} {
			if err := a.say(node, room, each); err != nil {
				return err
			}
		}
	}
	return nil
}

// volume is one as CreateVolume makes it.
func volume(name string, claim *corev1.PersistentVolumeClaim, node string) *v1alpha1.Volume {
	return &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Finalizers: []string{v1alpha1.VolumeFinalizer}, Labels: map[string]string{v1alpha1.ReplicaLabel(node): ""},
		},
		Spec: v1alpha1.VolumeSpec{
			Capacity: quantity(volumeBytes), VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4, PoolClass: class,
			ClaimRef: &v1alpha1.ClaimReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			Sharing:  v1alpha1.Exclusive, Placement: v1alpha1.PlacementNode, Replication: v1alpha1.Replication{Factor: 1},
			Replicas: []v1alpha1.ReplicaSpec{{Node: node, Pool: pool}},
		},
	}
}
