package worker

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/provision"
)

func TestDataGoesOnlyOnTheWordOfItsObject(t *testing.T) {
	for name, tc := range map[string]struct {
		read    error
		remove  bool
		keep    string
		watched bool
		word    orphan.Answer
		gone    bool
		orphan  v1alpha1.OrphanReason // empty: it is no orphan
		result  reconcile.Result
		failed  error
	}{
		"the object wants it removed":              {remove: true, gone: true},
		"the object does not know of it":           {keep: "from an old backup", orphan: v1alpha1.OrphanNotPlaced},
		"the object wants it, and the watch lags":  {watched: true, result: again},
		"the object wants it, and has lost a mark": {},
		"the object cannot be read":                {read: errAway, remove: true, failed: errAway, orphan: v1alpha1.OrphanNoObject},
		"there is no object":                       {read: missing, remove: true, orphan: v1alpha1.OrphanNoObject},
		"there is none, and it was forgotten":      {read: missing, word: orphan.Answer{Decision: decide.Decision{Verb: decide.Remove}}, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := &Base{Node: "n", Orphans: &orphans.Set{}, Word: func(context.Context, orphan.Record) (orphan.Answer, error) { return tc.word, nil }}
			b.Orphans.Add("v", orphans.Orphan{Reason: v1alpha1.OrphanNoObject}) // as it was found before
			gone := false
			result, err := b.Settle(t.Context(), Unaccounted{
				Record: orphan.Record{Name: "v"}, What: "volume", Watched: tc.watched,
				Read:   func(context.Context) error { return tc.read },
				Decide: func() (bool, string) { return tc.remove, tc.keep },
				Delete: func(context.Context) error { gone = true; return nil },
				Deleted: func(_ context.Context, err error) (reconcile.Result, error) {
					b.Orphans.Forget("v")
					return reconcile.Result{}, err
				},
			})
			if gone != tc.gone || result != tc.result || !errors.Is(err, tc.failed) {
				t.Errorf("gone %v, %v, %v", gone, result, err)
			}
			if got := b.Orphans.All()["v"].Reason; got != tc.orphan {
				t.Errorf("it is an orphan because %q, want %q", got, tc.orphan)
			}
		})
	}
}

func TestADeletionThatFailsIsReported(t *testing.T) {
	b := &Base{Orphans: &orphans.Set{}}
	_, err := b.Settle(t.Context(), Unaccounted{
		Read: func(context.Context) error { return nil }, Decide: func() (bool, string) { return true, "" },
		Delete:  func(context.Context) error { return provision.ErrInUse },
		Deleted: func(_ context.Context, err error) (reconcile.Result, error) { return reconcile.Result{}, err },
	})
	if !errors.Is(err, provision.ErrInUse) {
		t.Error(err)
	}
}
