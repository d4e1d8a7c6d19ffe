package oversight

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// link is a controller's way to the Leases.
type link struct {
	*leases
	of *overseer
}

func (l *link) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if l.of.cut.Load() {
		return errCut
	}
	return l.leases.List(ctx, list, options...)
}

var errCut = errors.New("connection refused")

// liveReads are a controller's reads of the API server. Anything may happen before each.
type liveReads struct{ o *overseer }

func (l liveReads) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return l.o.listFrom(l.o.s.now(), list)
}

func (l liveReads) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o := l.o
	_, volume := into.(*v1alpha1.Volume)
	if volume && o.plant.oldProofs && time.Since(o.keptAt) > 20*time.Second {
		o.keptAt = time.Now()
		for _, early := range []client.Object{&corev1.Node{}, &coordinationv1.Lease{}} {
			o.remember(early)
		}
	}
	o.s.between(o)
	if volume {
		o.before = o.broken
	}
	if o.cut.Load() {
		o.broken = time.Now()
		if o.plant.errorIsAbsent {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		}
		return errCut
	}
	err := o.answer(key, into)
	if n, is := into.(*corev1.Node); is {
		o.ordered = outOfService(n)
	}
	return err
}

// answer is that of the API server, unless a mistake comes between.
func (o *overseer) answer(key client.ObjectKey, into client.Object) error {
	_, volume := into.(*v1alpha1.Volume)
	if kept, is := o.kept[fmt.Sprintf("%T %s", into, key)]; is && o.plant.oldProofs {
		return fill(kept, into)
	}
	if volume && o.plant.cachedRecord {
		return o.getFrom(o.cached(), key, into)
	}
	return o.getFrom(o.s.now(), key, into)
}

// remember keeps what the API server says before the record is read.
func (o *overseer) remember(kind client.Object) {
	for _, name := range o.s.names {
		for _, key := range []client.ObjectKey{{Name: name}, {Namespace: namespace, Name: v1alpha1.GuardLeasePrefix + name}, {Namespace: corev1.NamespaceNodeLease, Name: name}} {
			into := kind.DeepCopyObject().(client.Object)
			if o.getFrom(o.s.now(), key, into) == nil {
				o.kept[fmt.Sprintf("%T %s", into, key)] = into
			}
		}
	}
}

func fill(from, into client.Object) error {
	switch into := into.(type) {
	case *corev1.Node:
		from.(*corev1.Node).DeepCopyInto(into)
	case *coordinationv1.Lease:
		from.(*coordinationv1.Lease).DeepCopyInto(into)
	case *v1alpha1.Volume:
		from.(*v1alpha1.Volume).DeepCopyInto(into)
	case *corev1.PersistentVolumeClaim:
		from.(*corev1.PersistentVolumeClaim).DeepCopyInto(into)
	}
	return nil
}

func (o *overseer) getFrom(from *shot, key client.ObjectKey, into client.Object) error {
	var found client.Object
	switch into.(type) {
	case *corev1.Node:
		if n := from.nodes[key.Name]; n != nil {
			found = n
		}
	case *v1alpha1.Volume:
		found = from.volume
	case *corev1.PersistentVolumeClaim:
		found = claim()
	case *coordinationv1.Lease:
		o.s.leases.mu.Lock()
		defer o.s.leases.mu.Unlock()
		if l := o.s.leases.stored[key.Name]; l != nil {
			found = l
		}
	}
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return fill(found, into)
}

func (o *overseer) listFrom(from *shot, list client.ObjectList) error {
	switch list := list.(type) {
	case *corev1.PersistentVolumeList:
		list.Items = append(list.Items, *persistentVolume())
	case *corev1.PodList:
		for _, p := range from.pods {
			list.Items = append(list.Items, *p)
		}
	case *v1alpha1.StorageNodeList:
		for _, n := range o.s.names {
			list.Items = append(list.Items, v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: n}})
		}
	}
	return nil
}

// Get, List, Create, Delete and Status are the controller's cached reads, and its writes.
func (o *overseer) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	return o.getFrom(o.cached(), key, into)
}

func (o *overseer) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return o.listFrom(o.cached(), list)
}

// cached is what the caches show.
func (o *overseer) cached() *shot {
	return &shot{volume: o.s.past[o.shown[ofVolumes]].volume, nodes: o.s.past[o.shown[ofNodes]].nodes, pods: o.s.past[o.shown[ofPods]].pods}
}

func (o *overseer) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }

func (o *overseer) Delete(_ context.Context, of client.Object, options ...client.DeleteOption) error {
	o.s.between(o)
	if o.cut.Load() {
		return errCut
	}
	var d client.DeleteOptions
	d.ApplyOptions(options)
	p := o.s.now().pods[of.GetName()]
	if p == nil {
		return apierrors.NewNotFound(corev1.Resource("pods"), of.GetName())
	}
	if p.UID != *d.Preconditions.UID {
		return apierrors.NewConflict(corev1.Resource("pods"), of.GetName(), errors.New("its UID is another"))
	}
	o.s.judgeEnd(p)
	o.s.changes(func(n *shot) { delete(n.pods, p.Name) })
	return nil
}

func (o *overseer) Status() client.SubResourceWriter { return statusWriter{o: o} }

type statusWriter struct {
	client.SubResourceWriter
	o *overseer
}

func (w statusWriter) Update(_ context.Context, of client.Object, _ ...client.SubResourceUpdateOption) error {
	o, v := w.o, of.(*v1alpha1.Volume)
	o.s.between(o)
	if o.cut.Load() {
		return errCut
	}
	old := o.s.now().volume
	if err := o.s.put(v, o.plant.blindWrites); err != nil {
		return err
	}
	o.s.judgeWrite(o, old, v)
	if o.s.chance(20) {
		return errors.New("the answer was lost")
	}
	return nil
}
