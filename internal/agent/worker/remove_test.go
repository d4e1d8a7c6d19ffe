package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/provision"
)

func TestDataGoesOnlyOnTheWordOfItsObject(t *testing.T) {
	kept := decide.Decision{Verb: decide.Keep, Reason: string(v1alpha1.OrphanNotPlaced), Message: "from an old backup"}
	removed := decide.Decision{Verb: decide.Remove}
	for name, tc := range map[string]struct {
		read     error
		decision decide.Decision
		watched  bool
		word     decide.Verb
		gone     bool
		orphan   v1alpha1.OrphanReason // empty: it is no orphan
		result   reconcile.Result
		failed   error
	}{
		"the object wants the data removed":                             {decision: removed, gone: true, orphan: v1alpha1.OrphanNoObject},
		"the object does not know the data":                             {decision: kept, orphan: v1alpha1.OrphanNotPlaced},
		"the object does not want the data removed, and the watch lags": {watched: true, result: again},
		"the object wants the data and has lost a mark":                 {},
		"the object cannot be read":                                     {read: errAway, decision: removed, failed: errAway, orphan: v1alpha1.OrphanNoObject},
		"there is no object":                                            {read: missing, decision: removed, orphan: v1alpha1.OrphanNoObject},
		// An API server that was restored from a backup does not have the object. The watch may
		// still show the one that was there before the restore, with any wish.
		"only the watch shows an object": {read: missing, decision: removed, watched: true, orphan: v1alpha1.OrphanNoObject},
		"the object is another driver's, and an administrator forgot the data before": {
			read: fmt.Errorf("%w: it is of driver d", driver.ErrForeign), decision: removed, word: decide.Remove,
		},
		"there is no object, and an administrator forgot the data": {read: missing, word: decide.Remove, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &data{readErr: tc.read, decision: tc.decision}
			w := f.work()
			w.Orphans.Add("v", orphans.Orphan{Reason: v1alpha1.OrphanNoObject}) // as it was found before
			w.Word = func(context.Context, orphan.Record) (orphan.Answer, error) {
				return orphan.Answer{Decision: decide.Decision{Verb: tc.word}}, nil
			}
			told := ""
			w.Base.Deleted = func(id string) { told = id }
			result, err := w.remove(t.Context(), &provision.Volume{ID: "v"}, tc.watched)
			if f.deleted != tc.gone || (told == "v") != tc.gone || result != tc.result || !errors.Is(err, tc.failed) {
				t.Errorf("gone %v, told of %q, %v, %v", f.deleted, told, result, err)
			}
			if got := w.Orphans.All()["v"].Reason; got != tc.orphan {
				t.Errorf("it is an orphan because %q, want %q", got, tc.orphan)
			}
			if answered := len(f.reported) > 0; answered != (tc.gone && tc.read == nil) {
				t.Errorf("reported %q", f.reported)
			}
		})
	}
}

func TestADeletionThatFailsIsReported(t *testing.T) {
	f := &data{decision: decide.Decision{Verb: decide.Remove}, deleteErr: provision.ErrInUse}
	w := f.work()
	told := false
	w.Base.Deleted = func(string) { told = true }
	_, err := w.remove(t.Context(), &provision.Volume{ID: "v"}, true)
	if !errors.Is(err, provision.ErrInUse) || told || len(f.reported) != 1 || f.reported[0] != "InUse: node n: in use" {
		t.Errorf("%v, reported %q, told %v", err, f.reported, told)
	}
}
