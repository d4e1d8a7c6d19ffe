package shell

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// kind of objects.
type kind = reflect.Type

func kindOf(o client.Object) kind { return reflect.TypeOf(o).Elem() }

// itemsOf are the items of a list.
func itemsOf(list client.ObjectList) reflect.Value {
	return reflect.ValueOf(list).Elem().FieldByName("Items")
}

// api is the API server: objects with versions, compare-and-swap, UIDs, and watches. Objects in it are never
// changed in place.
type api struct {
	w        *world
	mu       sync.Mutex
	revision int
	uids     int
	objects  map[kind]map[client.ObjectKey]client.Object
	// records are all that a Volume ever was.
	records map[string][]*v1alpha1.Volume
	// leases are all changes of Leases, in order, for watches that go on.
	leases    []change
	informers []*informer
	watchers  []*watcher
	down      atomic.Bool
}

type change struct {
	revision int
	event    watch.Event
}

func newAPI(w *world) *api {
	return &api{w: w, objects: map[kind]map[client.ObjectKey]client.Object{}, records: map[string][]*v1alpha1.Volume{}}
}

func missing(k kind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: k.Name()}, name)
}

func conflict(o client.Object, why string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: kindOf(o).Name()}, o.GetName(), errors.New(why))
}

// fill makes a copy of an object in another.
func fill(from, into client.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
}

func (a *api) get(key client.ObjectKey, into client.Object) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.objects[kindOf(into)][key]
	if found == nil {
		return missing(kindOf(into), key.Name)
	}
	fill(found, into)
	return nil
}

// all are the objects of a kind. They are not to be changed.
func (a *api) all(k kind) []client.Object {
	a.mu.Lock()
	defer a.mu.Unlock()
	return inOrder(a.objects[k])
}

// one is an object as it is now, nil if there is none. It is not to be changed.
func one[T any](a *api, key client.ObjectKey) *T {
	a.mu.Lock()
	defer a.mu.Unlock()
	var none *T
	o, _ := any(a.objects[reflect.TypeOf(none).Elem()][key]).(*T)
	return o
}

// put stores an object, and tells all that watch. It is called with the lock.
func (a *api) put(o client.Object, how watch.EventType) {
	k, key := kindOf(o), client.ObjectKeyFromObject(o)
	a.revision++
	o.SetResourceVersion(strconv.Itoa(a.revision))
	if a.objects[k] == nil {
		a.objects[k] = map[client.ObjectKey]client.Object{}
	}
	if how == watch.Deleted {
		delete(a.objects[k], key)
	} else {
		a.objects[k][key] = o
	}
	switch o := o.(type) {
	case *v1alpha1.Volume:
		a.records[o.Name] = append(a.records[o.Name], o)
	case *coordinationv1.Lease:
		if node, is := strings.CutPrefix(o.Name, v1alpha1.GuardLeasePrefix); is {
			a.w.oracle.renews(node, o)
		}
		c := change{a.revision, watch.Event{Type: how, Object: o}}
		a.leases = append(a.leases, c)
		for _, x := range a.watchers {
			x.brings(c)
		}
	}
	for _, i := range a.informers {
		if i.kind == k {
			i.hears(o, how == watch.Deleted)
		}
	}
}

func (a *api) create(o client.Object) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := kindOf(o)
	if a.objects[k][client.ObjectKeyFromObject(o)] != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: k.Name()}, o.GetName())
	}
	stored := o.DeepCopyObject().(client.Object)
	if stored.GetUID() == "" {
		a.uids++
		stored.SetUID(types.UID(fmt.Sprint("uid-", a.uids)))
	}
	a.put(stored, watch.Added)
	fill(stored, o)
	return nil
}

// update replaces an object, or its status alone, if it still is the one that was read.
func (a *api) update(who string, o client.Object, status bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := kindOf(o)
	old := a.objects[k][client.ObjectKeyFromObject(o)]
	switch {
	case old == nil:
		return missing(k, o.GetName())
	case o.GetResourceVersion() == "":
		return apierrors.NewBadRequest("resourceVersion must be specified for an update")
	case o.GetResourceVersion() != old.GetResourceVersion():
		return conflict(o, "it has changed")
	}
	next := o.DeepCopyObject().(client.Object)
	if status {
		next = old.DeepCopyObject().(client.Object)
		reflect.ValueOf(next).Elem().FieldByName("Status").Set(reflect.ValueOf(o.DeepCopyObject()).Elem().FieldByName("Status"))
	}
	if v, is := next.(*v1alpha1.Volume); is {
		a.w.oracle.record(who, old.(*v1alpha1.Volume), v)
	}
	a.put(next, watch.Modified)
	fill(next, o)
	return nil
}

// edit changes an object, whatever it is by now.
func edit[T any](a *api, key client.ObjectKey, change func(*T)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var none *T
	old := a.objects[reflect.TypeOf(none).Elem()][key]
	if old == nil {
		return missing(reflect.TypeOf(none).Elem(), key.Name)
	}
	next := old.DeepCopyObject().(client.Object)
	change(any(next).(*T))
	a.put(next, watch.Modified)
	return nil
}

// remove deletes an object for a process, or for a person if that is nil. A pod on a node goes when its kubelet says
// so, unless no grace is asked for.
func (a *api) remove(by *process, o client.Object, options ...client.DeleteOption) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var d client.DeleteOptions
	d.ApplyOptions(options)
	k := kindOf(o)
	old := a.objects[k][client.ObjectKeyFromObject(o)]
	switch {
	case old == nil:
		return missing(k, o.GetName())
	case d.Preconditions != nil && d.Preconditions.UID != nil && *d.Preconditions.UID != old.GetUID():
		return conflict(o, "its UID is another")
	case d.Preconditions != nil && d.Preconditions.ResourceVersion != nil && *d.Preconditions.ResourceVersion != old.GetResourceVersion():
		return conflict(o, "it has changed")
	}
	next := old.DeepCopyObject().(client.Object)
	if p, is := next.(*corev1.Pod); is && by != nil {
		volume, _ := a.objects[kindOf(&v1alpha1.Volume{})][client.ObjectKey{Name: volumeOf(p)}].(*v1alpha1.Volume)
		a.w.oracle.ends(by, p, volume)
	}
	if p, is := next.(*corev1.Pod); is && p.Spec.NodeName != "" && (d.GracePeriodSeconds == nil || *d.GracePeriodSeconds > 0) {
		if p.DeletionTimestamp == nil {
			p.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			a.put(p, watch.Modified)
		}
		return nil
	}
	a.put(next, watch.Deleted)
	return nil
}

// restore brings the record of a volume back as it was some versions ago.
func (a *api) restore(volume string, back int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	past := a.records[volume]
	if len(past) < 4 {
		return false
	}
	old := past[max(1, len(past)-1-back)]
	a.put(old.DeepCopy(), watch.Modified)
	return true
}
