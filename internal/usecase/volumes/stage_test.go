package volumes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/usecase/volumes"
	"berth.dev/berth/internal/usecase/volumetest"
)

const (
	gi = volumetest.Gi
	id = "pvc-00000000-0000-0000-0000-000000000001"
)

// agent answers for its node as soon as a Volume is written. A nil agent is mute.
type agent func(v *v1alpha1.Volume) v1alpha1.ReplicaStatus

// stage is a Service whose cache lags when it is held, in a cluster of nodes n and m with
// 10Gi each in pool vg of the PoolClass fast, and 1Gi in another pool of no class.
type stage struct {
	*lagging.Server
	*volumes.Service
	t      *testing.T
	name   string // of the volume under test
	book   *schedule.Book
	nodes  volumetest.Nodes
	shut   map[string]bool // nodes that are closed to new pods
	agents map[string]agent
	// wrote lists the verbs of the Service's writes.
	wrote []string
	// first, if set, runs just before the next write of the Service, as another process.
	first func()
	// rival, if set, changes the ledger once the Service has looked at a node there.
	rival func()
	// unread, if set, is of the kind that can be read neither from the cache nor live.
	unread runtime.Object
}

// play runs a test on a stage, in a bubble whose time passes when all wait.
func play(t *testing.T, test func(t *testing.T, s *stage), objects ...client.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newStage(t, volumetest.Nodes{"n": "", "m": ""}, objects...)) })
}

// newStage begins with the ledger's knowledge of the nodes. A StorageNode among the
// objects replaces that node's report.
func newStage(t *testing.T, nodes volumetest.Nodes, objects ...client.Object) *stage {
	t.Helper()
	lists := schedule.Lists{
		Driver:      driver.Local(),
		PoolClasses: []v1alpha1.PoolClass{*poolClass()},
	}
	reports := map[string]*v1alpha1.StorageNode{}
	for name := range nodes {
		reports[name] = storageNode(name)
	}
	all := []client.Object{poolClass()}
	for _, o := range objects {
		switch o := o.(type) {
		case *v1alpha1.StorageNode:
			reports[o.Name] = o
			continue
		case *v1alpha1.Volume:
			lists.Volumes = append(lists.Volumes, *o)
		case *corev1.PersistentVolumeClaim:
			lists.Claims = append(lists.Claims, *o)
		case *storagev1.StorageClass:
			lists.StorageClasses = append(lists.StorageClasses, *o)
		}
		all = append(all, o)
	}
	for _, o := range reports {
		lists.StorageNodes, all = append(lists.StorageNodes, *o), append(all, o)
	}
	s := &stage{t: t, name: id, book: lists.Book(heard(nodes)), Server: lagging.New(t, all...), nodes: nodes, shut: map[string]bool{}, agents: map[string]agent{"n": carves, "m": carves}}
	s.DeletedByUID(&v1alpha1.Volume{}) // deleted even if the node has answered meanwhile
	var watchers volumes.Watchers
	s.Service = volumes.New(lagging.Unread{Client: s.Client(), Kind: &s.unread, Err: errBroken}, lagging.Unread{Client: s.Others(), Kind: &s.unread, Err: errBroken}, some{s.nodes, s.shut}, contested{s.book, s}, &watchers)
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

// some are nodes of which a few are closed to new pods.
type some struct {
	volumetest.Nodes
	shut map[string]bool
}

func (s some) Shut(node string) bool { return s.shut[node] }

// heard are nodes whose heartbeats do not change.
type heard volumetest.Nodes

func (h heard) Away(node string) string { return volumetest.Nodes(h).Away(node) }
func (heard) Notify(func(string))       {}

// later runs a function once all goroutines wait.
func later(do func()) {
	time.AfterFunc(time.Second, func() {
		synctest.Wait()
		do()
	})
}

// within bounds the time of a call, so that a call that would wait for ever ends.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// answer makes the agents answer for the volume, and drops the parts that they have let go of.
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

// volume returns the Volume at the API server; nil if there is none.
func (s *stage) volume() *v1alpha1.Volume {
	v := &v1alpha1.Volume{}
	err := s.Server.Live().Get(s.t.Context(), types.NamespacedName{Name: s.name}, v)
	if client.IgnoreNotFound(err) != nil {
		s.t.Error(err)
	}
	if err != nil {
		return nil
	}
	return v
}

// change changes the volume and its status, as another process does.
func (s *stage) change(change func(v *v1alpha1.Volume)) {
	s.t.Helper()
	v := s.volume()
	change(v)
	status := v.DeepCopy()
	s.must(s.Others().Update(s.t.Context(), v))
	status.ResourceVersion = v.ResourceVersion
	s.must(s.Others().Status().Update(s.t.Context(), status))
}

// replaceAgent replaces a node's agent by one that is older than every feature. The cache
// still shows the features of the agent before it.
func (s *stage) replaceAgent(node string) {
	s.t.Helper()
	s.Hold()
	n := storageNode(node)
	s.must(s.Server.Live().Get(s.t.Context(), client.ObjectKeyFromObject(n), n))
	n.Status.Features = nil
	s.must(s.Others().Status().Update(s.t.Context(), n))
}

// drop removes the volume entirely, as another process does.
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
