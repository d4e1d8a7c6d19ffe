package replica

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

var forgotten = orphan.Answer{Decision: decide.Decision{Verb: decide.Remove, Reason: orphan.ReasonForgotten, Message: "it is named in spec.forget"}}

func TestAnOrphanGoesOnlyWhenItIsForgottenAndFree(t *testing.T) {
	for name, tc := range map[string]struct {
		word    orphan.Answer
		wordErr error
		live    *v1alpha1.Volume // made after the word; the watch shows no object
		mounted []string
		err     error
		kept    bool
		reason  v1alpha1.OrphanReason // empty: the data is no orphan
	}{
		"no administrator forgot the orphan":                              {kept: true, reason: v1alpha1.OrphanNoObject},
		"the administrator's word cannot be read":                         {wordErr: errAway, err: errAway, kept: true, reason: v1alpha1.OrphanNoObject},
		"an administrator forgot the orphan":                              {word: forgotten},
		"an administrator forgot the orphan, and a pod mounts the orphan": {word: forgotten, mounted: []string{"/pod"}, err: provision.ErrInUse, kept: true, reason: v1alpha1.OrphanNoObject},
		"an administrator forgot the orphan and then adopted the orphan":  {word: forgotten, live: volume(unlabelled, adopted), kept: true},
		"an administrator forgot the orphan, and an old object places the volume on another node": {
			word: forgotten, live: volume(unlabelled, on("n2")), kept: true, reason: v1alpha1.OrphanNotPlaced},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode()
			n.carve(t, "ext4")
			n.word, n.wordErr, n.mounted = tc.word, tc.wordErr, tc.mounted
			if tc.live != nil {
				n.put(tc.live)
			}
			if _, err := n.stepStale(t.Context()); !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v", err, tc.err)
			}
			if got := n.worker.Orphans.All()[id].Reason; n.has() != tc.kept || got != tc.reason {
				t.Errorf("kept %v as orphan %q, want %v and %q", n.has(), got, tc.kept, tc.reason)
			}
		})
	}
}

var errAway = errors.New("connection refused")

func TestAnObjectThatIsMadeAfterTheWordSavesTheData(t *testing.T) {
	n := newNode()
	n.carve(t, "ext4")
	n.word = forgotten
	reads := 0
	n.fail = func(string) error { // adopted between the two reads
		if reads++; reads == 2 {
			n.put(volume(unlabelled, adopted))
		}
		return nil
	}
	result, err := n.stepStale(t.Context())
	if err != nil || !n.has() || result.RequeueAfter == 0 {
		t.Errorf("error %v, data kept: %v, again after %s", err, n.has(), result.RequeueAfter)
	}
}

func TestAnOrphanIsNotForgottenIfTheLastReadFails(t *testing.T) {
	n := newNode()
	n.carve(t, "ext4")
	n.word = forgotten
	reads := 0
	n.fail = func(string) error {
		if reads++; reads == 2 {
			return errAway
		}
		return nil
	}
	if _, err := n.stepStale(t.Context()); !errors.Is(err, errAway) || !n.has() {
		t.Errorf("error %v, data kept: %v", err, n.has())
	}
}

func TestTheWordIsAskedOfTheDataThatIsThere(t *testing.T) {
	n := newNode()
	n.carve(t, "ext4")
	n.word = orphan.Answer{Again: time.Hour}
	result, err := n.stepStale(t.Context())
	if err != nil || result.RequeueAfter != time.Hour {
		t.Errorf("error %v, again after %s, want 1h", err, result.RequeueAfter)
	}
	if diff := cmp.Diff(orphan.Record{Name: id, Pool: "vg0", Size: gib}, n.about); diff != "" {
		t.Error(diff)
	}
}

func TestAnOrphanThatCannotBeForgottenSaysWhy(t *testing.T) {
	n := newNode()
	n.carve(t, "ext4")
	n.word, n.mounted = forgotten, []string{"/pod"}
	_, _ = n.stepStale(t.Context())
	want := "volume " + id + " on node n1 is to be deleted (it is named in spec.forget), and cannot be: in use: it is mounted at /pod"
	if got := n.worker.Orphans.All()[id].Message; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

func TestACrashAtAnyEffectOfForgettingLeavesNothing(t *testing.T) {
	forget := func(k int) []string {
		c := &memory.Crash{At: k}
		n := newNode()
		n.carve(t, "ext4")
		n.word, n.disturb, n.fail = forgotten, c, c.Effect
		n.restart()
		n.outlive(t, c)
		if n.has() || len(n.worker.Orphans.All()) > 0 {
			t.Errorf("after a crash at effect %d of %v: data is there: %v, orphans %v", k, c.Effects, n.has(), n.worker.Orphans.All())
		}
		return c.Effects
	}
	effects := forget(0)
	if len(effects) < 3 {
		t.Fatalf("only %v could be crashed at", effects)
	}
	for k := range effects {
		forget(k + 1)
	}
}
