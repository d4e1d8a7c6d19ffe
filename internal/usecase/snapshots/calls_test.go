package snapshots_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
	"berth.dev/berth/internal/usecase/snapshots"
	"berth.dev/berth/internal/usecase/volumetest"
)

const (
	id      = "snap-00000000-0000-0000-0000-000000000001"
	csiName = "snapshot-00000000-0000-0000-0000-000000000001"
	source  = "pvc-00000000-0000-0000-0000-000000000001"
)

// stage is a Service whose cache lags when it is held, and node n with the volume.
type stage struct {
	*lagging.Server
	*snapshots.Service
	t     *testing.T
	nodes volumetest.Nodes
	// kept is the node and pool that list the snapshot as an orphan; empty if none does.
	kept []string
	// says is the node's answer to a request; nil if the node is mute.
	says  *v1alpha1.SnapshotReplica
	wrote []string
	// first, if set, runs just before the next write of the Service, as another process.
	first func()
	// refuses, if set, is the API server's answer to a write.
	refuses error
	// unread, if set, is of the kind that can be read neither from the cache nor live.
	unread   runtime.Object
	watchers snapshots.Watchers
}

// play runs a test on a stage, in a bubble whose time passes when all wait.
func play(t *testing.T, test func(t *testing.T, s *stage), objects ...client.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		node := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		node.Status.Features = v1alpha1.AllFeatures()
		s := &stage{t: t, nodes: volumetest.Nodes{"n": ""}, says: entry(v1alpha1.SnapshotReady, v1alpha1.ReasonTaken), Server: lagging.New(t, append(objects, node)...)}
		s.Service = snapshots.New(lagging.Unread{Client: s.Client(), Kind: &s.unread, Err: errBroken}, lagging.Unread{Client: s.Others(), Kind: &s.unread, Err: errBroken}, s.nodes, s, &s.watchers)
		if _, err := s.Informer(&v1alpha1.Snapshot{}).AddEventHandler(s.watchers.Handler()); err != nil {
			t.Fatal(err)
		}
		s.Before = func(w lagging.Write) error {
			s.wrote = append(s.wrote, w.Verb)
			if do := s.first; do != nil {
				s.first = nil
				do()
			}
			return s.refuses
		}
		s.After = func(lagging.Write) error { s.answer(); return nil }
		test(t, s)
	})
}

// answer makes the node answer for the snapshot, and let go of one that is being deleted.
func (s *stage) answer() {
	o := s.object()
	switch {
	case o == nil || s.says == nil:
	case o.DeletionTimestamp != nil:
		o.Finalizers = nil
		s.must(s.Others().Update(s.t.Context(), o))
	default:
		o.Status.Replicas = []v1alpha1.SnapshotReplica{*s.says}
		s.must(s.Others().Status().Update(s.t.Context(), o))
	}
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Error(err)
	}
}

// object returns the object at the API server; nil if there is none.
func (s *stage) object() *v1alpha1.Snapshot {
	o := &v1alpha1.Snapshot{}
	err := s.Live().Get(s.t.Context(), client.ObjectKey{Name: id}, o)
	s.must(client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return o
}

// drop removes the snapshot entirely, as another process does.
func (s *stage) drop() {
	s.t.Helper()
	o := s.object()
	o.Finalizers = nil
	s.must(s.Others().Update(s.t.Context(), o))
	s.must(s.Others().Delete(s.t.Context(), o))
}

// make creates the Snapshot as another process does, and its node has it.
func (s *stage) make(options ...func(*v1alpha1.Snapshot)) {
	s.t.Helper()
	s.must(s.Others().Create(s.t.Context(), snapshot(options...)))
	s.answer()
}

func (s *stage) wroteOnly(verbs ...string) {
	s.t.Helper()
	if diff := cmp.Diff(verbs, s.wrote); diff != "" {
		s.t.Errorf("writes: %s", diff)
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// later runs a function once all goroutines wait.
func later(do func()) {
	time.AfterFunc(time.Second, func() {
		synctest.Wait()
		do()
	})
}

func expect(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || want == nil && err != nil {
		t.Errorf("got %v, want %v", err, want)
	}
}

func entry(state v1alpha1.SnapshotState, reason string) *v1alpha1.SnapshotReplica {
	e := &v1alpha1.SnapshotReplica{Node: "n", Pool: "vg0/thin", State: state, Reason: reason, Message: "because"}
	if state != v1alpha1.SnapshotFailed {
		e.Taken, e.RestoreSize = &metav1.Time{Time: time.Unix(1e9, 0)}, resource.NewQuantity(7, resource.BinarySI)
	}
	return e
}

func snapshot(options ...func(*v1alpha1.Snapshot)) *v1alpha1.Snapshot {
	o := &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: id, Finalizers: []string{v1alpha1.SnapshotFinalizer}}}
	o.Spec.Volume, o.Spec.Replicas = source, []v1alpha1.ReplicaSpec{{Node: "n", Pool: "vg0/thin"}}
	for _, option := range options {
		option(o)
	}
	return o
}

func taken(o *v1alpha1.Snapshot) {
	o.Status.Replicas = []v1alpha1.SnapshotReplica{*entry(v1alpha1.SnapshotReady, v1alpha1.ReasonTaken)}
}

func deleting(o *v1alpha1.Snapshot) { o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)} }

// volume is on node n, in a pool that takes snapshots.
func volume(options ...volumetest.Option) *v1alpha1.Volume {
	v := volumetest.Build(7, volumetest.Says("n", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, 7, 7))
	v.Name, v.Finalizers = source, []string{v1alpha1.VolumeFinalizer}
	v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: "n", Pool: "vg0/thin"}}
	for _, option := range options {
		option(v)
	}
	return v
}

func TestASnapshotIsTakenByOneWrite(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		got, err := s.Create(within(t), snapshots.Request{Name: csiName, Volume: source})
		if err != nil || got.ID != id || got.Volume != source || got.Size != 7 || !got.Ready || got.Taken.IsZero() {
			t.Errorf("%+v, %v", got, err)
		}
		s.wroteOnly("create")
		o := s.object()
		if _, labelled := o.Labels[v1alpha1.ReplicaLabel("n")]; !labelled || len(o.Finalizers) != 1 || o.Spec.FSType != v1alpha1.Ext4 {
			t.Errorf("%+v", o)
		}
	}, volume())
}

func TestCreateGoesOnFromTheExistingObject(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(s *stage)
		writes  []string
	}{
		"the cache shows the snapshot": {func(s *stage) { s.make() }, nil},
		"the cache does not show the snapshot yet": {func(s *stage) {
			s.Hold()
			s.make()
		}, []string{"create"}},
		"another process is faster": {func(s *stage) { s.first = func() { s.make() } }, []string{"create"}},
		"the node answers while the call waits": {func(s *stage) {
			answer := s.says
			s.says = nil
			s.make()
			later(func() { s.says = answer; s.answer() })
		}, nil},
		"the snapshot is gone, and the cache still shows the snapshot": {func(s *stage) {
			s.make()
			s.Hold()
			s.drop()
			later(s.Advance)
		}, []string{"create"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				test.prepare(s)
				got, err := s.Create(within(t), snapshots.Request{Name: csiName, Volume: source})
				if err != nil || got.Size != 7 {
					t.Errorf("%+v, %v", got, err)
				}
				s.wroteOnly(test.writes...)
			}, volume())
		})
	}
}

func TestASnapshotThatIsRefusedForGoodLeavesNoObject(t *testing.T) {
	elsewhere := func(o *v1alpha1.Snapshot) { o.Spec.Volume = "pvc-2" }
	for name, test := range map[string]struct {
		prepare func(s *stage)
		volume  *v1alpha1.Volume
		class   error
		remains bool
		writes  []string
	}{
		"there is no volume":                            {func(*stage) {}, nil, provision.ErrNotFound, false, nil},
		"the volume is being deleted":                   {func(*stage) {}, volume(func(v *v1alpha1.Volume) { v.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }), provision.ErrNotFound, false, nil},
		"the volume is not ready":                       {func(*stage) {}, volume(func(v *v1alpha1.Volume) { v.Status.Replicas[0].Ready = false }), provision.ErrUnavailable, false, nil},
		"the volume is on a whole disk":                 {func(*stage) {}, volume(func(v *v1alpha1.Volume) { v.Spec.Replicas[0].Pool = "disk:wwn-1" }), provision.ErrUnsupported, false, nil},
		"the node is away":                              {func(s *stage) { s.nodes["n"] = "is silent" }, volume(), provision.ErrUnavailable, false, nil},
		"the snapshot is being deleted":                 {func(s *stage) { s.says = nil; s.make(); s.must(s.Others().Delete(s.t.Context(), snapshot())) }, volume(), usecase.ErrBusy, true, nil},
		"the snapshot is of another volume":             {func(s *stage) { s.make(elsewhere) }, volume(), provision.ErrConflict, true, nil},
		"the node has no room":                          {func(s *stage) { s.says = entry(v1alpha1.SnapshotFailed, v1alpha1.ReasonNoSpace) }, volume(), provision.ErrNoSpace, false, []string{"create", "delete"}},
		"the node tries again":                          {func(s *stage) { s.says = entry(v1alpha1.SnapshotFailed, v1alpha1.ReasonProvisionerError) }, volume(), provision.ErrUnavailable, true, []string{"create"}},
		"the node does not answer":                      {func(s *stage) { s.says = nil }, volume(), context.DeadlineExceeded, true, []string{"create"}},
		"the node falls silent":                         {func(s *stage) { s.says = nil; s.first = func() { s.nodes["n"] = "is silent" } }, volume(), provision.ErrUnavailable, true, []string{"create"}},
		"another client deletes the snapshot meanwhile": {func(s *stage) { s.says = nil; later(s.drop) }, volume(), usecase.ErrBusy, false, []string{"create"}},
		"the agent is too old for snapshots": {func(s *stage) {
			s.must(s.Others().Delete(s.t.Context(), &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
		}, volume(), provision.ErrUnavailable, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if test.volume != nil {
				objects = append(objects, test.volume)
			}
			play(t, func(t *testing.T, s *stage) {
				test.prepare(s)
				_, err := s.Create(within(t), snapshots.Request{Name: csiName, Volume: source})
				expect(t, err, test.class)
				if (s.object() != nil) != test.remains {
					t.Errorf("%+v remains", s.object())
				}
				s.wroteOnly(test.writes...)
			}, objects...)
		})
	}
}

// The snapshot is withdrawn only if it is unchanged since the node refused it.
func TestASnapshotThatWasTakenAfterAllIsNotGivenUp(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.says = entry(v1alpha1.SnapshotFailed, v1alpha1.ReasonNoSpace)
		s.make()
		s.first = func() {
			s.says = entry(v1alpha1.SnapshotReady, v1alpha1.ReasonTaken)
			s.answer()
		}
		_, err := s.Create(within(t), snapshots.Request{Name: csiName, Volume: source})
		expect(t, err, usecase.ErrBusy)
		got, err := s.Create(within(t), snapshots.Request{Name: csiName, Volume: source})
		if err != nil || !got.Ready {
			t.Errorf("%+v, %v", got, err)
		}
	}, volume())
}

func TestASecondCallForASnapshotIsBusy(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, s *stage) error{
		"create": func(ctx context.Context, s *stage) error {
			_, err := s.Create(ctx, snapshots.Request{Name: csiName, Volume: source})
			return err
		},
		"delete": func(ctx context.Context, s *stage) error { return s.Delete(ctx, id) },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.DeletedByUID(&v1alpha1.Snapshot{})
				answer, second := s.says, error(nil)
				s.says = nil
				later(func() {
					second = call(t.Context(), s)
					s.says = answer
					s.answer()
				})
				_, err := s.Create(within(t), snapshots.Request{Name: csiName, Volume: source})
				expect(t, err, nil)
				expect(t, second, usecase.ErrBusy)
				expect(t, call(within(t), s), nil) // the lock is free again
			}, volume())
		})
	}
}

func TestTheAnswerOfItsNodeDecidesHowADeletionEnds(t *testing.T) {
	inUse := entry(v1alpha1.SnapshotFailed, v1alpha1.ReasonInUse)
	for name, test := range map[string]struct {
		prepare func(s *stage)
		objects []client.Object
		class   error
		writes  []string
	}{
		"the node has removed the snapshot":         {func(*stage) {}, []client.Object{snapshot(taken)}, nil, []string{"delete"}},
		"the node does not answer":                  {func(s *stage) { s.says = nil }, []client.Object{snapshot(taken)}, context.DeadlineExceeded, []string{"delete"}},
		"the node is away":                          {func(s *stage) { s.says, s.nodes["n"] = nil, "is silent" }, []client.Object{snapshot(taken)}, nil, []string{"delete"}},
		"a process uses the snapshot":               {func(s *stage) { s.says = nil }, []client.Object{snapshot(func(o *v1alpha1.Snapshot) { o.Status.Replicas = []v1alpha1.SnapshotReplica{*inUse} })}, provision.ErrInUse, []string{"delete"}},
		"the snapshot is being deleted already":     {func(s *stage) { s.says, s.nodes["n"] = nil, "is silent" }, []client.Object{snapshot(taken, deleting)}, nil, nil},
		"the snapshot does not exist":               {func(*stage) {}, nil, nil, nil},
		"a new snapshot took the name":              {func(s *stage) { s.first = func() { s.drop(); s.make() } }, []client.Object{snapshot(taken)}, usecase.ErrBusy, []string{"delete"}},
		"another client deleted the snapshot first": {func(s *stage) { s.first = s.drop }, []client.Object{snapshot(taken)}, nil, []string{"delete"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.DeletedByUID(&v1alpha1.Snapshot{}) // deleted even if the node has answered meanwhile
				test.prepare(s)
				expect(t, s.Delete(within(t), id), test.class)
				s.wroteOnly(test.writes...)
			}, test.objects...)
		})
	}
}

func TestASnapshotIsReadFromTheAPIServer(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.Hold()
		got, err := s.Get(within(t), id)
		if err != nil || got.ID != id {
			t.Errorf("%+v, %v", got, err)
		}
		s.drop()
		for _, name := range []string{id, "theirs"} {
			_, err = s.Get(within(t), name)
			expect(t, err, provision.ErrNotFound)
			if name != id {
				expect(t, s.Delete(within(t), name), nil)
			}
		}
	}, snapshot(taken))
}

func TestOnlySnapshotsThatWereTakenAreShown(t *testing.T) {
	for name, test := range map[string]struct {
		object *v1alpha1.Snapshot
		of     string
		want   int
	}{
		"taken":                                  {snapshot(taken), "", 1},
		"taken, and asked for by volume":         {snapshot(taken), source, 1},
		"taken, and asked for by another volume": {snapshot(taken), "pvc-2", 0},
		"not taken yet":                          {snapshot(), "", 0},
		"taken and marked to go":                 {snapshot(taken, deleting), "", 0},
		"gone, and the object remains":           {snapshot(taken, func(o *v1alpha1.Snapshot) { o.Status.Replicas[0].State = v1alpha1.SnapshotGone }), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				list, next, err := s.List(within(t), test.of, "", 0)
				if err != nil || len(list) != test.want || next != "" {
					t.Errorf("%+v, %q, %v", list, next, err)
				}
				if _, err := s.Get(within(t), id); test.of == "" && (err == nil) != (test.want == 1) {
					t.Errorf("it is read: %v", err)
				}
				if _, _, err := s.List(within(t), "", "strange", 0); !errors.Is(err, usecase.ErrBadToken) {
					t.Errorf("got %v", err)
				}
			}, test.object)
		})
	}
}
