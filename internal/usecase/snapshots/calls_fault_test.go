package snapshots_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
	"berth.dev/berth/internal/usecase/snapshots"
)

var (
	errBroken = errors.New("the API server does not answer")
	errExists = apierrors.NewAlreadyExists(schema.GroupResource{Resource: "snapshots"}, id)
)

func create(ctx context.Context, s *stage) error {
	_, err := s.Create(ctx, snapshots.Request{Name: csiName, Volume: source})
	return err
}

func get(ctx context.Context, s *stage) error { _, err := s.Get(ctx, id); return err }

func remove(ctx context.Context, s *stage) error { return s.Delete(ctx, id) }

func list(ctx context.Context, s *stage) error { _, _, err := s.List(ctx, "", "", 0); return err }

// A snapshot that is taken for missing would be taken twice, or be lost to its users.
func TestAnUnreadableObjectIsAnErrorAndChangesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		unread runtime.Object
		there  []client.Object
		call   func(ctx context.Context, s *stage) error
	}{
		"a snapshot that is to be taken":   {&v1alpha1.Snapshot{}, nil, create},
		"the volume of a new snapshot":     {&v1alpha1.Volume{}, nil, create},
		"the agent for a new snapshot":     {&v1alpha1.StorageNode{}, nil, create},
		"a snapshot that is shown":         {&v1alpha1.Snapshot{}, []client.Object{snapshot(taken)}, get},
		"a snapshot that is to be deleted": {&v1alpha1.Snapshot{}, []client.Object{snapshot(taken)}, remove},
		"all snapshots":                    {&v1alpha1.SnapshotList{}, []client.Object{snapshot(taken)}, list},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.unread = test.unread
				expect(t, test.call(within(t), s), errBroken)
				s.wroteOnly()
			}, append(test.there, volume())...)
		})
	}
}

// For an error of the API server the sidecar would repeat the call for ever.
func TestAnIDThatIsNotBerthsIsNotAskedFor(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.unread = &v1alpha1.Snapshot{}
		expect(t, s.Delete(within(t), "theirs"), nil)
		_, err := s.Get(within(t), "theirs")
		expect(t, err, provision.ErrNotFound)
		s.unread = &v1alpha1.Volume{}
		_, err = s.Create(within(t), snapshots.Request{Name: csiName, Volume: "theirs"})
		expect(t, err, provision.ErrNotFound)
		s.wroteOnly()
	})
}

func TestNoSnapshotIsTakenOnTheWordOfAStaleCache(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(s *stage)
		class     error
	}{
		"the volume is being deleted": {func(s *stage) { s.must(s.Others().Delete(s.t.Context(), volume())) }, provision.ErrNotFound},
		"an older agent replaced the agent on the node": {func(s *stage) {
			node := &v1alpha1.StorageNode{}
			s.must(s.Live().Get(s.t.Context(), client.ObjectKey{Name: "n"}, node))
			node.Status.Features = nil
			s.must(s.Others().Status().Update(s.t.Context(), node))
		}, provision.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.Hold()
				test.meanwhile(s)
				expect(t, create(within(t), s), test.class)
				s.wroteOnly()
			}, volume())
		})
	}
}

func TestAWriteThatFailsSaysWhy(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(s *stage)
		class   error
		remains bool
		writes  []string
	}{
		"the wish is not written":                        {func(s *stage) { s.refuses = errBroken }, errBroken, false, []string{"create"}},
		"another process makes and deletes the snapshot": {func(s *stage) { s.refuses = errExists }, usecase.ErrBusy, false, []string{"create"}},
		"the snapshot of another process cannot be read": {func(s *stage) { s.refuses, s.first = errExists, func() { s.unread = &v1alpha1.Snapshot{} } }, errBroken, false, []string{"create"}},
		"a wish that was refused is not taken back":      {func(s *stage) { s.make(); s.refuses = errBroken }, errBroken, true, []string{"delete"}},
		"a wish that was refused was taken back":         {func(s *stage) { s.make(); s.first = s.drop }, provision.ErrNoSpace, false, []string{"delete"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.says = entry(v1alpha1.SnapshotFailed, v1alpha1.ReasonNoSpace)
				test.prepare(s)
				expect(t, create(within(t), s), test.class)
				if (s.object() != nil) != test.remains {
					t.Errorf("%+v remains", s.object())
				}
				s.wroteOnly(test.writes...)
			}, volume())
		})
	}
}

// The next call finds the name free.
func TestARefusalIsToldOnceNothingRemains(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.says = entry(v1alpha1.SnapshotFailed, v1alpha1.ReasonNoSpace)
		s.make()
		s.After = func(lagging.Write) error { later(s.answer); return nil }
		expect(t, create(within(t), s), provision.ErrNoSpace)
		if s.object() != nil {
			t.Error("it was told while the node still had to let go")
		}
		s.wroteOnly("delete")
	}, volume())
}

// A watcher that is left behind keeps the last object that it saw as long as the manager runs.
func TestACallLeavesNoWatcher(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		expect(t, create(within(t), s), nil)
		if left := reflect.ValueOf(&s.watchers).Elem().FieldByName("byName").Len(); left != 0 {
			t.Errorf("%d snapshots are still watched", left)
		}
	}, volume())
}
