package orphans

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/orphan"
)

// said is the time of the entry that says that pvc-1 is to be forgotten.
const said = 2000

var (
	since  = metav1.Unix(1000, 0)
	record = orphan.Record{Name: "pvc-1", Pool: "vg0", Size: 1 << 30}
)

// node is a StorageNode that reports pvc-1 in vg0 as an orphan since 1000.
func node(changes ...func(*v1alpha1.StorageNode)) *v1alpha1.StorageNode {
	n := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	o := &v1alpha1.Orphan{Since: since, Reason: v1alpha1.OrphanNoObject, Size: resource.MustParse("1Gi")}
	n.Status.Pools = []v1alpha1.Pool{{Name: "vg0", Inventory: []v1alpha1.InventoryItem{{Volume: "pvc-1", Orphan: o}}}}
	for _, c := range changes {
		c(n)
	}
	return n
}

func named(n *v1alpha1.StorageNode) {
	n.Spec.Forget = []v1alpha1.ForgottenOrphan{{Pool: "vg0", Name: "pvc-1", Size: resource.MustParse("1Gi"), Since: since, At: metav1.Unix(said, 0)}}
}

// says returns a reader that has a StorageNode, or an error.
func says(t *testing.T, n *v1alpha1.StorageNode, err error) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme)
	if n != nil {
		b = b.WithObjects(n)
	}
	return interceptor.NewClient(b.Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
}

func TestTheAPIServerHasTheLastWord(t *testing.T) {
	away := errors.New("connection refused")
	for name, tc := range map[string]struct {
		watched, live *v1alpha1.StorageNode
		away          error
		goes          bool
	}{
		"the watch and the API server name the orphan":           {watched: node(named), live: node(named), goes: true},
		"the API server does not name the data any more":         {watched: node(named), live: node()},
		"the StorageNode is gone":                                {watched: node(named)},
		"only the API server names the data":                     {watched: node(), live: node(named)},
		"neither the watch nor the API server has a StorageNode": {},
		"the API server is away":                                 {watched: node(named), away: away},
		"the watch does not name the data":                       {watched: node(), away: away},
	} {
		t.Run(name, func(t *testing.T) {
			w := Word{Node: "n1", Watched: says(t, tc.watched, nil), Live: says(t, tc.live, tc.away), Clock: testingclock.NewFakePassiveClock(time.Unix(2000, 0))}
			got, err := w.On(t.Context(), record)
			asked := tc.away != nil && tc.watched.Spec.Forget != nil
			if (got.Verb == decide.Remove) != tc.goes || asked != errors.Is(err, away) || asked != (err != nil) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestTheAPIServerHasTheLastWordOnLostDataToo(t *testing.T) {
	away := errors.New("connection refused")
	for name, tc := range map[string]struct {
		watched, live         *v1alpha1.StorageNode
		watchFails, liveFails error
		want                  bool
	}{
		"the watch and the API server name the data":             {watched: node(named), live: node(named), want: true},
		"the API server does not name the data any more":         {watched: node(named), live: node()},
		"only the API server names the data":                     {watched: node(), live: node(named)},
		"the API server is away":                                 {watched: node(named), liveFails: away},
		"the watch cannot be read":                               {live: node(named), watchFails: away},
		"neither the watch nor the API server has a StorageNode": {},
		"the StorageNode is gone":                                {watched: node(named)},
		"the watch does not name the data":                       {watched: node()},
	} {
		t.Run(name, func(t *testing.T) {
			w := Word{Node: "n1", Watched: says(t, tc.watched, tc.watchFails), Live: says(t, tc.live, tc.liveFails),
				Clock: testingclock.NewFakePassiveClock(time.Unix(said, 0))}
			fails := cmp.Or(tc.watchFails, tc.liveFails)
			got, err := w.Waived(t.Context(), orphan.Lost{Name: "pvc-1", Pool: "vg0", Deleted: since})
			if got != tc.want || !errors.Is(err, fails) {
				t.Errorf("%v, %v", got, err)
			}
			if got, err := w.On(t.Context(), record); (got.Verb == decide.Remove) != tc.want || !errors.Is(err, fails) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestWhyAWordWasNotHeededIsSaidOfTheOrphan(t *testing.T) {
	for reason, want := range map[string]string{orphan.ReasonKept: "no object", orphan.ReasonChanged: "not heeded", orphan.ReasonStale: "not heeded"} {
		t.Run(reason, func(t *testing.T) {
			var s Set
			result, err := s.Settle(t.Context(), Case{Record: record, What: "volume", Node: "n1", Message: "no object",
				Word: func(context.Context, orphan.Record) (orphan.Answer, error) {
					return orphan.Answer{Decision: decide.Decision{Verb: decide.Keep, Reason: reason, Message: "not heeded"}, Again: time.Hour}, nil
				},
				Object: func(context.Context) error { return apierrors.NewNotFound(v1alpha1.Resource("volumes"), "pvc-1") },
				Delete: func(context.Context) error { t.Error("it was deleted"); return nil },
			})
			if err != nil || result.RequeueAfter != time.Hour || s.All()["pvc-1"].Message != want {
				t.Errorf("%+v, %v, %v", result, err, s.All())
			}
		})
	}
}

func TestAnOrphanIsDeletedByAWordThatKnewForHowLongItIsOneAndIsNoneThen(t *testing.T) {
	away := errors.New("connection refused")
	gone := apierrors.NewNotFound(v1alpha1.Resource("volumes"), "pvc-1")
	for name, tc := range map[string]struct {
		word, object, deletion error
		asked, gone            bool // whether Settle tries to delete it, and whether it goes
		says                   string
	}{
		"the order was read":                      {object: gone, asked: true, gone: true},
		"the order cannot be read":                {word: away, object: gone, says: "no object"},
		"the object of the orphan cannot be read": {object: away, says: "an orphan"},
		"the object of the orphan exists again":   {says: "an orphan"},
		"the data cannot be deleted":              {object: gone, deletion: away, asked: true, says: "volume pvc-1 on node n1 is to be deleted (named), and cannot be: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			s := Set{Now: func() time.Time { return now }}
			s.Add("pvc-1", Orphan{Reason: v1alpha1.OrphanNoObject, Message: "an orphan"})
			now = now.Add(time.Hour)
			asked := false
			_, err := s.Settle(t.Context(), Case{Record: orphan.Record{Name: "pvc-1"}, What: "volume", Node: "n1", Message: "no object",
				Word: func(_ context.Context, r orphan.Record) (orphan.Answer, error) {
					if r.Known != time.Hour {
						t.Errorf("it is known for %s", r.Known)
					}
					return orphan.Answer{Decision: decide.Decision{Verb: decide.Remove, Message: "named"}}, tc.word
				},
				Object: func(context.Context) error { return tc.object },
				Delete: func(context.Context) error { asked = true; return tc.deletion },
			})
			fails := errors.Is(errors.Join(tc.word, tc.object, tc.deletion), away)
			if errors.Is(err, away) != fails || asked != tc.asked {
				t.Errorf("asked to go: %v, %v", asked, err)
			}
			if all := s.All(); (len(all) == 0) != tc.gone || all["pvc-1"].Message != tc.says {
				t.Errorf("orphans %v", all)
			}
		})
	}
}

func TestAnInheritedOrAddedOrphanIsNewsOnce(t *testing.T) {
	var s Set
	told := 0
	s.Notify(func() { told++ })
	lost := Orphan{v1alpha1.OrphanNoObject, "lost"}
	if s.Inherit(map[string]Orphan{"a": lost}); told != 1 {
		t.Errorf("told %d times of what was inherited", told)
	}
	if s.Add("a", lost) || !s.Add("b", lost) {
		t.Error("only what was not known is news")
	}
}
