package snapshot

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/orphan"
)

var forgotten = orphan.Answer{Decision: decide.Decision{Verb: decide.Remove, Reason: orphan.ReasonForgotten, Message: "it is named in spec.forget"}}

func TestAnOrphanedSnapshotGoesOnlyWhenItIsForgotten(t *testing.T) {
	away := errors.New("connection refused")
	for name, tc := range map[string]struct {
		given  given
		live   *v1alpha1.Snapshot // the watch shows no object
		err    error
		kept   bool
		reason v1alpha1.OrphanReason // empty: it is no orphan
	}{
		"no administrator forgot the orphan":      {kept: true, reason: v1alpha1.OrphanNoObject},
		"the administrator's word cannot be read": {given: given{wordErr: away}, err: away, kept: true, reason: v1alpha1.OrphanNoObject},
		"an administrator forgot the orphan":      {given: given{word: forgotten}},
		"the object lost only the label":          {given: given{word: forgotten}, live: object(unlabelled, saying(ready())), kept: true},
		"an object from an old backup places the snapshot on another node": {
			given: given{word: forgotten}, live: object(unlabelled, on("n2")), kept: true, reason: v1alpha1.OrphanNotPlaced},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, nil)
			n.take()
			n.given, n.live = tc.given, tc.live
			if _, err := n.stepStale(); !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v", err, tc.err)
			}
			if got := n.worker.Orphans.All()[id].Reason; n.has() != tc.kept || got != tc.reason {
				t.Errorf("kept %v as orphan %q, want %v and %q", n.has(), got, tc.kept, tc.reason)
			}
			if diff := cmp.Diff(orphan.Record{Name: id, Pool: "vg0", Size: gib}, n.about); tc.live == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}
