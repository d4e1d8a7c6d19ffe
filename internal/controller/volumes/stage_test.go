package volumes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/controller/volumes"
	"berth.dev/berth/internal/controller/volumetest"
	"berth.dev/berth/internal/schedule"
)

const (
	gi = volumetest.Gi
	id = "pvc-00000000-0000-0000-0000-000000000001"
)

// agent answers for its node as soon as a Volume is written. It is nil for one that is mute.
type agent func(v *v1alpha1.Volume) v1alpha1.ReplicaStatus

// stage is a Service whose cache lags when it is held, in a cluster of nodes n and m with
// 10Gi each in pool vg of the PoolClass fast, and 1Gi in another pool of no class.
type stage struct {
	*lagging.Server
	*volumes.Service
	t      *testing.T
	nodes  volumetest.Nodes
	shut   map[string]bool // nodes that new pods are kept from
	agents map[string]agent
	// wrote are the verbs of the Service's writes.
	wrote []string
	// first, if set, is what others do just before the next write of the Service.
	first func()
	// unread, if set, is of the kind that neither the cache nor the API server reads.
	unread runtime.Object
}

// play runs a test on a stage, in a bubble whose time passes when all wait.
func play(t *testing.T, test func(t *testing.T, s *stage), objects ...client.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newStage(t, volumetest.Nodes{"n": "", "m": ""}, objects...)) })
}

// newStage begins with what the ledger has heard of the nodes. A StorageNode among the
// objects takes the place of that node.
func newStage(t *testing.T, nodes volumetest.Nodes, objects ...client.Object) *stage {
	t.Helper()
	lists := schedule.Lists{
		PoolClasses: []v1alpha1.PoolClass{*poolClass()},
	}
	reports := map[string]*v1alpha1.StorageNode{"n": storageNode("n"), "m": storageNode("m")}
	all := []client.Object{poolClass()}
	for _, o := range objects {
		switch o := o.(type) {
		case *v1alpha1.StorageNode:
			reports[o.Name] = o
			continue
		case *v1alpha1.Volume:
			lists.Volumes = append(lists.Volumes, *o)
		}
		all = append(all, o)
	}
	for _, o := range reports {
		lists.StorageNodes, all = append(lists.StorageNodes, *o), append(all, o)
	}
	s := &stage{t: t, Server: lagging.New(t, all...), nodes: nodes, shut: map[string]bool{}, agents: map[string]agent{"n": carves, "m": carves}}
	s.DeletedByUID(&v1alpha1.Volume{}) // whatever the node has said meanwhile, the volume is to go
	var watchers volumes.Watchers
	s.Service = volumes.New(reads{s.Client(), s}, reads{s.Others(), s}, some{s.nodes, s.shut}, lists.Book(heard(s.nodes)), &watchers)
	if _, err := s.Informer(&v1alpha1.Volume{}).AddEventHandler(watchers.Handler()); err != nil {
		t.Fatal(err)
	}
	s.Before = func(w lagging.Write) error {
		s.wrote = append(s.wrote, w.Verb)
		if do := s.first; do != nil {
			s.first = nil
			do()
		}
		return nil
	}
	s.After = func(lagging.Write) error {
		s.answer()
		return nil
	}
	return s
}

// some are nodes of which pods are kept from a few.
type some struct {
	volumetest.Nodes
	shut map[string]bool
}

func (s some) Shut(node string) bool { return s.shut[node] }

// heard are nodes whose heartbeats do not change.
type heard volumetest.Nodes

func (h heard) Away(node string) string { return volumetest.Nodes(h).Away(node) }
func (heard) Notify(func(string))       {}

// later does something once everybody waits.
func later(do func()) {
	time.AfterFunc(time.Second, func() {
		synctest.Wait()
		do()
	})
}

// within is the time that a call has; a call that would wait for ever ends with it.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// answer has the agents answer for the volume as it is, and drops what they have let go of.
func (s *stage) answer() {
	v := s.volume()
	if v == nil {
		return
	}
	var entries []v1alpha1.ReplicaStatus
	for _, replica := range v.Spec.Replicas {
		if answer := s.agents[replica.Node]; answer != nil && v.DeletionTimestamp == nil {
			entries = append(entries, answer(v))
		}
	}
	for _, e := range v.Status.Replicas {
		if s.agents[e.Node] == nil {
			entries = append(entries, e)
		}
	}
	v.Status.Replicas = entries
	s.must(s.Others().Status().Update(s.t.Context(), v))
	if v.DeletionTimestamp != nil && len(entries) == 0 {
		v.Finalizers = nil
		s.must(s.Others().Update(s.t.Context(), v))
	}
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Error(err)
	}
}

// volume is what the API server has; nil if there is none.
func (s *stage) volume() *v1alpha1.Volume {
	v := &v1alpha1.Volume{}
	err := s.Server.Live().Get(s.t.Context(), types.NamespacedName{Name: id}, v)
	if client.IgnoreNotFound(err) != nil {
		s.t.Error(err)
	}
	if err != nil {
		return nil
	}
	return v
}

// change is what others write to the volume, and to its status.
func (s *stage) change(change func(v *v1alpha1.Volume)) {
	s.t.Helper()
	v := s.volume()
	change(v)
	status := v.DeepCopy()
	s.must(s.Others().Update(s.t.Context(), v))
	status.ResourceVersion = v.ResourceVersion
	s.must(s.Others().Status().Update(s.t.Context(), status))
}

// replaceAgent puts an agent in a node's place that is older than every feature. The cache
// still shows what the agent before it could do.
func (s *stage) replaceAgent(node string) {
	s.t.Helper()
	s.Hold()
	n := storageNode(node)
	s.must(s.Server.Live().Get(s.t.Context(), client.ObjectKeyFromObject(n), n))
	n.Status.Features = nil
	s.must(s.Others().Status().Update(s.t.Context(), n))
}

// drop is what others do to the volume: nothing remains of it.
func (s *stage) drop() {
	s.t.Helper()
	s.change(func(v *v1alpha1.Volume) { v.Finalizers = nil })
	s.must(s.Others().Delete(s.t.Context(), s.volume()))
}

// on fails the test unless the volume is where it should be; nowhere for an empty node.
func (s *stage) on(node string) {
	s.t.Helper()
	v := s.volume()
	if v == nil {
		s.t.Errorf("there is no volume, want one on %q", node)
		return
	}
	got := ""
	for _, replica := range v.Spec.Replicas {
		got += replica.Node
	}
	if got != node {
		s.t.Errorf("the volume is on %q, want %q", got, node)
	}
}

func expect(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || want == nil && err != nil {
		t.Errorf("got %v, want %v", err, want)
	}
}

func poolClass() *v1alpha1.PoolClass {
	c := &v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}
	c.Spec.Provisioner = v1alpha1.ProvisionerLVM
	return c
}

func storageNode(name string) *v1alpha1.StorageNode {
	n := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Features = v1alpha1.AllFeatures()
	n.Status.Pools = []v1alpha1.Pool{{
		Name: "vg", Provisioner: v1alpha1.ProvisionerLVM, Health: v1alpha1.PoolHealthy, Classes: []string{"fast"},
		Total: *bytes(10 * gi), AllocationUnit: *bytes(volumetest.Mi),
	}}
	n.Status.Pools = append(n.Status.Pools, v1alpha1.Pool{Name: "other", Provisioner: v1alpha1.ProvisionerLVM, Health: v1alpha1.PoolHealthy, Total: *bytes(gi)})
	return n
}

func bytes(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.BinarySI) }

// request is for 1Gi of the class fast, on the allowed nodes.
func request(allowed ...string) volumes.Request {
	return volumes.Request{
		Name: id, Size: volumes.Size{Required: gi}, Mode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4, PoolClass: "fast",
		Claim:    &v1alpha1.ClaimReference{Namespace: "shop", Name: "data"},
		Topology: volumes.Topology{Allowed: allowed},
	}
}

func reservation(allowed ...string) volumes.Request {
	r := request(allowed...)
	r.Reservation = true
	return r
}

// existing is the volume of request, as options say.
func existing(options ...volumetest.Option) *v1alpha1.Volume {
	v := volumetest.Build(gi, options...)
	v.Name, v.Finalizers = id, []string{v1alpha1.VolumeFinalizer}
	v.Spec.ClaimRef = &v1alpha1.ClaimReference{Namespace: "shop", Name: "data", UID: types.UID(id[len("pvc-"):])}
	return v
}

var wanted, says = volumetest.Wanted, volumetest.Says

// carved is the answer of a node that has the volume as it is wanted.
func carved(node string) volumetest.Option {
	return says(node, v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, gi, gi)
}

func reserved(v *v1alpha1.Volume) {
	v.Annotations = map[string]string{v1alpha1.ReservedAnnotation: ""}
}

func deleting(v *v1alpha1.Volume) {
	v.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
}

// carves is an agent that does what is wanted.
func carves(v *v1alpha1.Volume) v1alpha1.ReplicaStatus {
	r := v.Spec.Replicas[0]
	return v1alpha1.ReplicaStatus{
		Node: r.Node, Pool: r.Pool, State: v1alpha1.ReplicaReady, Ready: true, Reason: v1alpha1.ReasonCarved,
		Capacity: &v.Spec.Capacity, Requested: &v.Spec.Capacity,
	}
}

// refuses is an agent that answers with a reason.
func refuses(reason string) agent {
	return func(v *v1alpha1.Volume) v1alpha1.ReplicaStatus {
		r := v.Spec.Replicas[0]
		return v1alpha1.ReplicaStatus{
			Node: r.Node, Pool: r.Pool, State: v1alpha1.ReplicaFailed, Reason: reason, Message: "because", Requested: &v.Spec.Capacity,
		}
	}
}

func persistentVolume() *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: id}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.LocalDriverName, VolumeHandle: id}
	return pv
}
