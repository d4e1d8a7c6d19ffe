package orphans

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"berth.dev/berth/api/v1alpha1"
)

func TestADeletionDoesNotWaitForLostDataThatWasNamedAfterItBegan(t *testing.T) {
	for name, tc := range map[string]struct {
		word func(*v1alpha1.ForgottenOrphan)
		now  int64
		want bool
	}{
		"an administrator named the data":                        {word: func(*v1alpha1.ForgottenOrphan) {}, now: said, want: true},
		"an administrator named the data a day ago":              {word: func(*v1alpha1.ForgottenOrphan) {}, now: said + 86400, want: true},
		"an administrator named the data more than a day ago":    {word: func(*v1alpha1.ForgottenOrphan) {}, now: said + 86401},
		"a clock far ahead stamped the order":                    {word: func(*v1alpha1.ForgottenOrphan) {}, now: said - 86401},
		"an administrator named other data":                      {word: func(f *v1alpha1.ForgottenOrphan) { f.Name = "pvc-2" }, now: said},
		"an administrator named the data in another pool":        {word: func(f *v1alpha1.ForgottenOrphan) { f.Pool = "vg1" }, now: said},
		"an administrator named the data in an earlier deletion": {word: func(f *v1alpha1.ForgottenOrphan) { f.Since = metav1.Unix(999, 0) }, now: said},
	} {
		t.Run(name, func(t *testing.T) {
			l := Lost{Name: "pvc-1", Pool: "vg0", Deleted: metav1.NewTime(since)}
			if got := Waived(node(named(tc.word)), l, time.Unix(tc.now, 0)); got != tc.want {
				t.Errorf("waived: %v", got)
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
		"the watch and the API server name the data":             {watched: node(named()), live: node(named()), want: true},
		"the API server does not name the data any more":         {watched: node(named()), live: node()},
		"only the API server names the data":                     {watched: node(), live: node(named())},
		"the API server is away":                                 {watched: node(named()), liveFails: away},
		"the watch cannot be read":                               {live: node(named()), watchFails: away},
		"neither the watch nor the API server has a StorageNode": {},
		"the StorageNode is gone":                                {watched: node(named())},
		"the watch does not name the data":                       {watched: node()},
	} {
		t.Run(name, func(t *testing.T) {
			w := Word{Node: "n1", Watched: says(t, tc.watched, tc.watchFails), Live: says(t, tc.live, tc.liveFails),
				Clock: testingclock.NewFakePassiveClock(time.Unix(said, 0))}
			fails := cmp.Or(tc.watchFails, tc.liveFails)
			got, err := w.Waived(t.Context(), Lost{Name: "pvc-1", Pool: "vg0", Deleted: metav1.NewTime(since)})
			if got != tc.want || !errors.Is(err, fails) {
				t.Errorf("%v, %v", got, err)
			}
			if verdict, err := w.On(t.Context(), record); verdict.Delete != tc.want || !errors.Is(err, fails) {
				t.Errorf("%+v, %v", verdict, err)
			}
		})
	}
}

func TestWhyAWordWasNotHeededIsSaidOfTheOrphan(t *testing.T) {
	for reason, want := range map[string]string{ReasonKept: "no object", ReasonChanged: "not heeded", ReasonStale: "not heeded"} {
		t.Run(reason, func(t *testing.T) {
			var s Set
			result, err := s.Settle(t.Context(), Case{Record: record, What: "volume", Node: "n1", Message: "no object",
				Word: func(context.Context, Record) (Verdict, error) {
					return Verdict{Reason: reason, Message: "not heeded", Again: time.Hour}, nil
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

func TestASnapshotBesideOthersIsFoundInTheReport(t *testing.T) {
	n := node(named(func(f *v1alpha1.ForgottenOrphan) { f.Name = "snap-1" }))
	items := n.Status.Pools[0].Inventory
	n.Status.Pools[0].Inventory = []v1alpha1.InventoryItem{{Volume: "pvc-2"}, {Snapshot: "snap-1", Orphan: items[0].Orphan}}
	r := record
	r.Name = "snap-1"
	if got := Judge(n, r, 0, time.Unix(said, 0)); !got.Delete {
		t.Errorf("%+v", got)
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
			_, err := s.Settle(t.Context(), Case{Record: Record{Name: "pvc-1"}, What: "volume", Node: "n1", Message: "no object",
				Word: func(_ context.Context, r Record) (Verdict, error) {
					if r.Known != time.Hour {
						t.Errorf("it is known for %s", r.Known)
					}
					return Verdict{Delete: true, Message: "named"}, tc.word
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
