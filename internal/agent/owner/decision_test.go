package owner

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

var (
	errAbsent = apierrors.NewNotFound(schema.GroupResource{Resource: "volumes"}, volume)
	onADisk   = v1alpha1.Replication{Kind: v1alpha1.ReplicationAttachments, Factor: 2, Attachments: &v1alpha1.Attachments{MaxShares: 2}}
)

func TestUpkeepWaitsWhileAKubeletIsAnswered(t *testing.T) {
	rules := ownership.Node{Unstage: says(ownership.Action{Verb: ownership.Done}), Tend: says(ownership.Action{Verb: ownership.Detach})}
	b := onBench(t, ofDisks, rules)
	b.world.object = recorded(onADisk)
	if err := b.reach(t.Context(), volume, &asking{unstaging: true}); err != nil || len(b.behind) > 0 {
		t.Errorf("%v, and %d steps are under way", err, len(b.behind))
	}
}

func TestAStepThatGoesOnInTheBackgroundEndsTheDecisions(t *testing.T) {
	b := onBench(t, ofDisks, ownership.Node{Tend: says(ownership.Action{Verb: ownership.Detach})})
	b.world.object = recorded(onADisk)
	if _, err := b.follow(t.Context(), volume, &asking{}); err != nil || len(b.behind) != 1 {
		t.Errorf("%v, and %d steps are under way", err, len(b.behind))
	}
}

func TestWhoWantsAVolume(t *testing.T) {
	for name, test := range map[string]struct {
		asks   asking
		asked  time.Duration // for how long the epoch is kept for a kubelet
		lapsed bool
		want   bool
	}{
		"the kubelet that asks":                       {asks: asking{wanted: true}, lapsed: true, want: true},
		"one that asked a while ago":                  {asked: time.Second, want: true},
		"one that asked too long ago":                 {asked: 0},
		"one that asked before the node lapsed":       {asked: time.Second, lapsed: true},
		"one that lets go of it, and has asked":       {asks: asking{unstaging: true}, asked: time.Second},
		"an agent that looks before a kubelet's call": {asks: asking{idle: true}, asked: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.Node{})
			b.fails["Read"] = errBroken
			b.hint(func(h *hint) {
				if h.wanted = noon.Add(test.asked); !test.lapsed {
					h.cleared = b.lapses
				}
			})
			if l, err := b.gather(t.Context(), volume, &test.asks); err != nil || l.facts.Wanted != test.want {
				t.Errorf("wanted %v, %v", l.facts.Wanted, err)
			}
		})
	}
}

func TestADecisionIsGivenUpWhenTheNodeLapsesOrTheCallEnds(t *testing.T) {
	b := onBench(t, ofDisks, ownership.Node{})
	b.fails["Read"] = errBroken
	b.world.standing.Fenced = true
	if _, err := b.gather(t.Context(), volume, &asking{}); !errors.Is(err, errLapsed) {
		t.Errorf("as the guard is fenced: %v", err)
	}
	if l, err := b.gather(t.Context(), volume, &asking{}); err != nil || !l.facts.Lapsed {
		t.Errorf("once that is known: lapsed %v, %v", l.facts.Lapsed, err)
	}
	ctx, end := context.WithCancel(t.Context())
	b.world.during = end
	if _, err := b.gather(ctx, volume, &asking{}); !errors.Is(err, context.Canceled) {
		t.Errorf("as the call ends: %v", err)
	}
}

func TestEachSilentNodeIsAskedOnceAndAllOthersEachTime(t *testing.T) {
	b, a := onBench(t, ofDisks, ownership.Node{}), &asking{}
	for i, step := range []struct {
		silent []string
		asked  string
	}{
		{[]string{"b"}, "Ask b c d e"},
		{[]string{"b", "c", "d"}, "Ask c d e"},
		{nil, "Ask e"},
	} {
		b.had, b.world.silent = nil, step.silent
		peers := a.ask(t.Context(), b.world, volume, []string{"b", "c", "d", "e"})
		if b.effects() != step.asked || !slices.ContainsFunc(peers, func(p ownership.Peer) bool { return p.Node == "e" }) {
			t.Errorf("step %d: %q, and %d answer", i, b.effects(), len(peers))
		}
	}
}

func TestTheRecordOfAnotherDiskIsNotBelieved(t *testing.T) {
	b := onBench(t, ofDisks, ownership.Node{})
	b.world.object, b.world.kept.Disk = recorded(onADisk), shared.Disk{Volume: volume, Handle: "lun1", Identity: "wwn:2"}
	l, err := b.gather(t.Context(), volume, &asking{})
	if err != nil || l.facts.Record != nil || l.facts.Absent || !errors.Is(l.trouble, provision.ErrConflict) {
		t.Errorf("the rules are told of %+v, absent %v, %v, %v", l.facts.Record, l.facts.Absent, l.trouble, err)
	}
}

func TestTheUpkeepOfAVolumeWithoutARecordFollowsTheAnswerToAKubelet(t *testing.T) {
	for name, test := range map[string]struct {
		do     ownership.Verb
		record error
		pokes  int
	}{
		"its disk is to be detached":    {ownership.Detach, errAbsent, 1},
		"nothing is to be done":         {ownership.Nothing, errAbsent, 0},
		"its record will tell it again": {ownership.Detach, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			rules := ownership.Node{Unstage: says(ownership.Action{Verb: ownership.Done}), Tend: says(ownership.Action{Verb: test.do})}
			b := onBench(t, ofDisks, rules)
			b.world.object, b.fails["Read"] = recorded(onADisk), test.record
			if err := b.reach(t.Context(), volume, &asking{unstaging: true}); err != nil || len(b.pokes) != test.pokes {
				t.Errorf("%v, and it is tended %d times", err, len(b.pokes))
			}
		})
	}
}

func TestARecordThatTheAPIWouldNotHoldIsNotWritten(t *testing.T) {
	b := onBench(t, ofDisks, ownership.Node{})
	if err := b.write(t.Context(), &look{id: volume, object: recorded(onADisk)}, &ownership.Volume{}); err == nil || b.effects() != "" {
		t.Errorf("%v, after %q", err, b.effects())
	}
}

func TestADeletedVolumeIsForgottenOnlyIfNothingOfItIsHereAtBothLooks(t *testing.T) {
	gone := func() *look { return &look{id: volume} }
	for name, test := range map[string]struct {
		at    func(l *look, h *hint)
		keeps bool
	}{
		"nothing is here":                {at: func(*look, *hint) {}},
		"its epoch was given up":         {at: func(l *look, h *hint) { l.facts.Copy, h.told = ownership.Copy{Opened: two, Closed: two}, 2 }},
		"a pod may have it":              {at: func(l *look, _ *hint) { l.facts.Mounted = true }, keeps: true},
		"its epoch goes on":              {at: func(l *look, h *hint) { l.facts.Copy, h.told = ownership.Copy{Opened: two, Closed: one}, 2 }, keeps: true},
		"the guard has its epoch open":   {at: func(l *look, h *hint) { l.facts.Copy, h.told = ownership.Copy{Opened: two, Closed: two}, 1 }, keeps: true},
		"its data are here":              {at: func(l *look, _ *hint) { l.facts.Copy.Exists = true }, keeps: true},
		"its disk is attached":           {at: func(l *look, _ *hint) { l.facts.Disk.Link = ownership.Attached }, keeps: true},
		"an attach of it is under way":   {at: func(_ *look, h *hint) { h.moving = true }, keeps: true},
		"its attach may have left a bit": {at: func(l *look, _ *hint) { l.facts.Disk.Link = ownership.AttachFailed }, keeps: true},
	} {
		for when, looks := range map[string][2]bool{"when its record is read": {true, false}, "when its record is gone": {false, true}} {
			t.Run(name+" "+when, func(t *testing.T) {
				b := onBench(t, ofDisks, ownership.Node{})
				clean := hint{told: 3}
				for i, l := range []*look{gone(), gone()} {
					b.hint(func(h *hint) {
						leaves := h.leaves
						*h = clean
						if h.leaves = leaves; looks[i] {
							test.at(l, h)
						}
					})
					if i == 0 {
						l.facts.Record = &ownership.Volume{Deleting: true}
						(actor{b.Owner}).noteLeaving(l)
						continue
					}
					l.facts.Absent = true
					if err := (actor{b.Owner}).forget(l); err != nil {
						t.Error(err)
					}
				}
				if kept := b.effects() == ""; kept != test.keeps {
					t.Errorf("kept %v", kept)
				}
			})
		}
	}
}

func TestAVolumeThatCannotBeForgottenIsTriedAgain(t *testing.T) {
	b := onBench(t, ofDisks, ownership.Node{})
	b.hint(func(h *hint) { h.leaves = true })
	b.fails["Read"], b.fails["Erase"] = errAbsent, errBroken
	if _, err := b.follow(t.Context(), volume, &asking{}); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	delete(b.fails, "Erase")
	for again, erases := range []bool{true, false} { // what is forgotten is not forgotten again
		b.had = nil
		if _, err := b.follow(t.Context(), volume, &asking{}); err != nil || slices.Contains(b.had, "Erase") != erases {
			t.Errorf("look %d: %v, after %q", again, err, b.effects())
		}
	}
}

func TestAVolumeIsNotForgottenUnlessARecordSaidThatItIsBeingDeleted(t *testing.T) {
	b := onBench(t, ofDisks, ownership.Node{})
	b.world.object = recorded(onADisk)
	for _, absent := range []error{nil, errAbsent} { // as with a backup from before the volume
		b.fails["Read"] = absent
		if _, err := b.follow(t.Context(), volume, &asking{}); err != nil || slices.Contains(b.had, "Erase") {
			t.Errorf("%v, after %q", err, b.effects())
		}
	}
}

func TestHowSoonTheRulesAreAskedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		do     ownership.Action
		record error
		look   error
		again  time.Duration
		fails  bool
	}{
		"the disk does not answer":          {do: ownership.Action{Verb: ownership.Wait, Why: ownership.Why{Reason: ownership.BeingAttached}}, look: errBroken, again: 5 * time.Second},
		"another process attaches the disk": {do: ownership.Action{Verb: ownership.Wait, Why: ownership.Why{Reason: ownership.BeingAttached}}, again: time.Second},
		"an attach has failed":              {do: ownership.Action{Verb: ownership.Wait, Why: ownership.Why{Reason: ownership.AttachmentFailed}}, again: 5 * time.Second},
		"the record cannot be read":         {do: ownership.Action{Verb: ownership.Wait, Why: ownership.Why{Reason: ownership.RecordUnread}}, record: errBroken, again: 5 * time.Second, fails: true},
		"the target has forgotten a writer": {do: ownership.Action{Verb: ownership.Wait, Why: ownership.Why{Reason: ownership.ReservationForgotten}}, fails: true},
		"another node owns it":              {do: ownership.Action{Verb: ownership.Wait, Why: ownership.Why{Reason: ownership.PrimaryElsewhere}}},
		"there is nothing to do":            {do: ownership.Action{Why: ownership.Why{Reason: ownership.BeingAttached}}},
		"nor after a failure":               {do: ownership.Action{Why: ownership.Why{Reason: ownership.AttachmentFailed}}},
		"nor after one to read":             {do: ownership.Action{Why: ownership.Why{Reason: ownership.RecordUnread}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.Node{Tend: says(test.do)})
			b.world.object, b.fails["Read"], b.fails["Look"] = recorded(onADisk), test.record, test.look
			if again, err := b.Tend(t.Context(), volume); again != test.again || (err != nil) != test.fails {
				t.Errorf("after %v, %v", again, err)
			}
		})
	}
}

func TestTheVolumesThatTheNodeKeepsAreAllThatItVouchesFor(t *testing.T) {
	open, over := journal.Kept{Volume: volume, Opened: two}, journal.Kept{Volume: volume, Opened: two, Closed: two}
	for name, test := range map[string]struct {
		kept  journal.Kept
		fails string
		do    ownership.Action
		want  error
		why   ownership.Reason
	}{
		"the guard has one open":     {kept: over, fails: "CloseEpoch", want: errBroken},
		"they cannot be listed":      {kept: open, fails: "Volumes", want: errBroken},
		"one cannot be read":         {kept: open, fails: "Load", want: errBroken},
		"the rules wait with one":    {kept: open, do: ownership.Action{Verb: ownership.Wait, Why: ownership.Why{Reason: ownership.CopyLost}}, want: provision.ErrUnavailable, why: ownership.CopyLost},
		"the rules do not close one": {kept: open, do: ownership.Action{Verb: ownership.Persist, Promise: ownership.Promise{Epoch: two}}, want: provision.ErrUnavailable, why: ownership.CopyInUse},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.Node{Unstage: says(test.do)})
			b.world.kept, b.world.object, b.world.standing.Fenced, b.fails[test.fails] = test.kept, recorded(onADisk), true, errBroken
			err := b.Vouch(t.Context())
			now := &NotNowError{}
			if errors.As(err, &now); !errors.Is(err, test.want) || now.Why.Reason != test.why || slices.Contains(b.had, "AllClosed") {
				t.Errorf("%v, after %q", err, b.effects())
			}
			b.had = nil
			if err := b.Watch(t.Context()); test.fails == "Volumes" && !errors.Is(err, errBroken) || len(b.pokes) > 0 {
				t.Errorf("Watch: %v, and %d volumes are tended", err, len(b.pokes))
			}
		})
	}
}
