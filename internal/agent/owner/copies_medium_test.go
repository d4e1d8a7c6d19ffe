package owner

import (
	"context"
	"errors"
	"testing"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

func point(seq uint64) lineage.Point { return lineage.Point{Epoch: one, Seq: seq} }

// copied is the record of a volume whose data are in the first epoch.
func copied() *ownership.Volume {
	return &ownership.Volume{
		Kind: ownership.Snapshots, Factor: 2, Epoch: two, Lineage: lineage.Lineage{{Epoch: one}, {Epoch: two, From: point(9)}},
		Primary: ownership.Primary{Node: "a", Phase: ownership.Active}, Replicas: []ownership.Replica{{Node: "a"}, {Node: "b"}},
	}
}

func TestWhatANodeKeepsOfACopyIsBesideItsDataAndInTheJournal(t *testing.T) {
	here := provision.Replica{Copy: ownership.Copy{Exists: true, Opened: two}}
	for name, test := range map[string]struct {
		fails  map[string]error
		want   error
		exists bool
	}{
		"it is here":                    {exists: true},
		"it is not here":                {fails: map[string]error{"State": provision.ErrNotFound}},
		"a pool that may have it":       {fails: map[string]error{"State": errBroken}, want: errBroken},
		"the journal that is not there": {fails: map[string]error{"Load": errBroken}, want: errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofCopies, ownership.Node{})
			b.world.kept, b.pools.replica, b.fails["State"], b.fails["Load"] = journal.Kept{Flushed: two}, here, test.fails["State"], test.fails["Load"]
			l := &look{id: volume}
			err := b.c.Medium.recall(t.Context(), b.Owner, l)
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if c := &l.facts.Copy; test.want == nil && (c.Exists != test.exists || c.Flushed != two) {
				t.Errorf("the copy is %+v", c)
			}
		})
	}
}

func TestWhenASnapshotIsDue(t *testing.T) {
	made := func(ago time.Duration) []journal.Seen { return []journal.Seen{{Point: point(3), At: noon.Add(-ago)}} }
	for name, test := range map[string]struct {
		interval  time.Duration
		seen      []journal.Seen
		unchanged time.Duration // how long ago
		due       bool
	}{
		"no interval is known":               {0, made(time.Hour), time.Hour, false},
		"the newest is old":                  {time.Minute, made(time.Minute), time.Hour, true},
		"the newest is young":                {time.Minute, made(59 * time.Second), time.Hour, false},
		"the age of the newest is not known": {time.Minute, nil, time.Hour, true},
		"nothing was written a moment ago":   {time.Minute, made(time.Hour), time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofCopies, ownership.Node{})
			k := &journal.Kept{Volume: volume, Seen: test.seen}
			h := &hint{interval: test.interval, unchanged: noon.Add(-test.unchanged)}
			if h.due(k, point(3), noon) != test.due {
				t.Errorf("due %v", !test.due)
			}
			// Watch finds the same from what the journal has.
			b.hint(func(now *hint) { *now = *h })
			if b.c.Medium.stirs(t.Context(), b.Owner, k) != test.due {
				t.Errorf("Watch finds it due: %v", !test.due)
			}
		})
	}
}

func TestWhatTheRulesAreToldOfACopy(t *testing.T) {
	b := onBench(t, ofCopies, ownership.Node{})
	look := func(now time.Duration, v *ownership.Volume, dirty bool) *look {
		l := &look{id: volume}
		l.facts.Now, l.facts.Record, l.facts.Copy.Dirty = noon.Add(now), v, dirty
		b.c.Medium.survey(t.Context(), b.Owner, l)
		return l
	}
	v, every := copied(), copied().Failover.Interval()
	if l := look(0, nil, true); l.facts.SnapshotDue || l.facts.Full || l.trouble != nil || l.facts.Keep != 1 {
		t.Errorf("before a record was read: %+v, %v", l.facts, l.trouble)
	}
	for i, step := range []struct {
		at    time.Duration
		dirty bool
		due   bool
	}{
		{0, true, true},
		{time.Second, true, true}, // it was not taken
		{2 * time.Second, false, true},
		{2*time.Second + every/2, false, false}, // nothing was written, so the next look is an interval away
		{2*time.Second + every, true, true},
	} {
		if l := look(step.at, v, step.dirty); l.facts.SnapshotDue != step.due {
			t.Errorf("step %d: due %v", i, l.facts.SnapshotDue)
		}
	}
	b.hint(func(h *hint) { h.failed, h.fullUntil = errBroken, noon.Add(time.Minute) })
	if l := look(0, v, true); !l.facts.Full || !errors.Is(l.trouble, errBroken) {
		t.Errorf("full %v, %v", l.facts.Full, l.trouble)
	}
	if l := look(time.Minute, v, true); l.facts.Full {
		t.Error("a minute later there is no room yet")
	}
}

func TestTheJournalKnowsAVolumeBeforeAnEpochOfItsCopyIsOpened(t *testing.T) {
	for name, test := range map[string]struct {
		mark  provision.Mark
		known bool
		fails error
		want  string
	}{
		"an epoch of a new volume":              {mark: provision.Mark{Opened: two}, want: "Store, Mark opened 2"},
		"an epoch of one that the journal has":  {mark: provision.Mark{Opened: two}, known: true, want: "Mark opened 2"},
		"a promise":                             {mark: provision.Mark{Promise: ownership.Promise{Epoch: two}}, want: "Mark promise 2 closed 0"},
		"an end":                                {mark: provision.Mark{Closed: two}, want: "Mark promise 0 closed 2"},
		"an epoch, and no journal can be wrote": {mark: provision.Mark{Opened: two}, fails: errBroken, want: "Store"},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofCopies, ownership.Node{})
			b.fails["Store"] = test.fails
			err := b.c.Medium.mark(t.Context(), b.Owner, &look{id: volume, known: test.known}, test.mark)
			if !errors.Is(err, test.fails) || b.effects() != test.want {
				t.Errorf("%v, marked by %q", err, b.effects())
			}
		})
	}
}

// A container that is being killed may have the volume mounted for itself after the last unmount of the Owner.
func TestACopyIsFlushedOnceTheGuardSaysThatNothingHasIt(t *testing.T) {
	for name, refusal := range map[string]error{"nothing has it": nil, "a container has it": errBroken} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofCopies, ownership.Node{})
			l := taken()
			b.world.kept, b.fails["CloseEpoch"] = l.kept, refusal
			err := (actor{b.Owner}).unmount(t.Context(), l, &asking{unstaging: true})
			if k := b.world.kept; err != nil || k.InUse("boot") || (k.Flushed == two) != (refusal == nil) {
				t.Errorf("%v, kept %+v", err, k)
			}
		})
	}
}

func TestEachActionOnACopyIsOneEffect(t *testing.T) {
	object := &v1alpha1.Volume{}
	for _, test := range []struct {
		do    ownership.Action
		want  string
		fails string
		err   error // that it fails with
		more  bool
		says  error
	}{
		{do: ownership.Action{Verb: ownership.Grow, Size: 8}, want: "Make 8", more: true},
		{do: ownership.Action{Verb: ownership.Grow, Size: 8}, want: "Make 8", fails: "Make", err: provision.ErrNoSpace, more: true},
		{do: ownership.Action{Verb: ownership.Grow, Size: 8}, want: "Make 8", fails: "Make", err: errBroken, says: errBroken},
		{do: ownership.Action{Verb: ownership.Snapshot, To: point(4)}, want: "Store, Snapshot 4", more: true},
		{do: ownership.Action{Verb: ownership.Snapshot, To: point(4)}, want: "Store, Snapshot 4", fails: "Snapshot", err: errBroken, says: errBroken},
		{do: ownership.Action{Verb: ownership.Snapshot, To: point(4)}, want: "Store", fails: "Store", err: errBroken, says: errBroken},
		{do: ownership.Action{Verb: ownership.Preserve, To: point(3)}, want: "Preserve 3", more: true},
		{do: ownership.Action{Verb: ownership.Preserve, To: point(3)}, want: "Preserve 3", fails: "Preserve", err: errBroken, says: errBroken},
		{do: ownership.Action{Verb: ownership.RollBack, To: point(3)}, want: "RollBack 3", more: true},
		{do: ownership.Action{Verb: ownership.RollBack, To: point(3)}, want: "RollBack 3", fails: "RollBack", err: errBroken, says: errBroken},
		{do: ownership.Action{Verb: ownership.Drop, Points: []lineage.Point{point(1), point(2)}}, want: "Drop 2", more: true},
		{do: ownership.Action{Verb: ownership.Drop}, want: "Drop 0", fails: "Drop", err: provision.ErrInUse},
		{do: ownership.Action{Verb: ownership.Drop}, want: "Drop 0", fails: "Drop", err: errBroken, says: errBroken},
		{do: ownership.Action{Verb: ownership.Condemn, Until: noon}, want: "Mark condemned true quarantined false until 43200", more: true},
		{do: ownership.Action{Verb: ownership.Quarantine, Until: noon}, want: "Mark condemned false quarantined true until 43200", more: true},
		{do: ownership.Action{Verb: ownership.Reprieve}, want: "Mark condemned false quarantined false until 0", more: true},
		{do: ownership.Action{Verb: ownership.Destroy}, want: "Destroy", more: true},
		{do: ownership.Action{Verb: ownership.Destroy}, want: "Destroy", fails: "Destroy", err: errBroken, says: errBroken},
		{do: ownership.Action{Verb: ownership.Detach}, says: provision.ErrUnsupported},
	} {
		b := onBench(t, ofCopies, ownership.Node{})
		b.fails[test.fails] = test.err
		more, err := b.c.Medium.carryOut(t.Context(), b.Owner, &look{id: volume, object: object}, test.do)
		if !errors.Is(err, test.says) || err == nil && more != test.more || b.effects() != test.want {
			t.Errorf("%v, of which %q fails with %v: %q, more %v, %v", test.do.Verb, test.fails, test.err, b.effects(), more, err)
		}
	}
}

func TestACopyForWhichThereIsNoRoomIsNotMadeLargerForAWhile(t *testing.T) {
	b := onBench(t, ofCopies, ownership.Node{})
	b.fails["Make"] = provision.ErrNoSpace
	l := &look{id: volume}
	l.facts.Now = noon
	if _, err := b.c.Medium.carryOut(t.Context(), b.Owner, l, ownership.Action{Verb: ownership.Grow, Size: 8}); err != nil {
		t.Fatal(err)
	}
	l = &look{id: volume}
	l.facts.Now = noon.Add(unroomy - 1)
	if b.c.Medium.survey(t.Context(), b.Owner, l); !l.facts.Full || !errors.Is(l.trouble, provision.ErrNoSpace) {
		t.Errorf("full %v, %v", l.facts.Full, l.trouble)
	}
}

func TestACopyBecomesWritableOnceNoStreamIsOnItsWay(t *testing.T) {
	half := &provision.Receiving{}
	for name, test := range map[string]struct {
		streams bool
		half    *provision.Receiving
		fails   string
		want    error
		effects string
	}{
		"nothing was received":         {effects: "Writable"},
		"a stream was received half":   {half: half, effects: "Abort, Writable"},
		"it cannot be removed":         {half: half, fails: "Abort", want: errBroken, effects: "Abort"},
		"the head cannot be made":      {fails: "Writable", want: errBroken, effects: "Writable"},
		"a stream is still on its way": {streams: true, half: half, want: provision.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofCopies, ownership.Node{})
			b.fails[test.fails] = errBroken
			stream, end := context.WithCancelCause(t.Context())
			defer end(nil)
			b.hint(func(h *hint) { h.moving, h.end = test.streams, end })
			l := &look{id: volume}
			l.replica.Receiving = test.half
			content, err := b.c.Medium.ready(t.Context(), b.Owner, l)
			if !errors.Is(err, test.want) || b.effects() != test.effects || (err == nil) != (content.Source == "/dev/head") && test.fails == "" {
				t.Errorf("%+v, %v, after %q", content, err, b.effects())
			}
			if ended := errors.Is(context.Cause(stream), errNotNeeded); ended != test.streams {
				t.Errorf("the stream was ended: %v", ended)
			}
		})
	}
}

func TestNoEpochBeginsAtTheGuardForACopyThatDoesNotBecomeWritable(t *testing.T) {
	b := onBench(t, ofCopies, ownership.Node{})
	b.fails["Writable"] = errBroken
	l := taken()
	l.facts.Mounted, l.facts.Record, l.object = false, &ownership.Volume{Kind: ownership.Snapshots}, &v1alpha1.Volume{}
	err := (actor{b.Owner}).use(t.Context(), l, ownership.Action{}, &asking{use: func(context.Context) error { return b.does("use") }})
	if !errors.Is(err, errBroken) || b.effects() != "Writable" {
		t.Errorf("%v, after %q", err, b.effects())
	}
}

func TestHowLongACopyIsLeftAlone(t *testing.T) {
	for verb, want := range map[ownership.Verb]time.Duration{ownership.Wait: 30 * time.Second, ownership.Nothing: 5 * time.Minute, ownership.Pull: 5 * time.Minute} {
		if got := (copies{}).rests(ownership.Action{Verb: verb}); got != want {
			t.Errorf("after %v for %v, want %v", verb, got, want)
		}
	}
}

// A copy that is full takes no snapshot, not even the last writes of a pod.
func TestACopyNeverNeedsAsManyPointsAsItMayHold(t *testing.T) {
	const nodes, held = 8, 3 // the most in a record, and the most that one of them has held
	v := copied()
	v.Replicas, v.RecoveryPoint = nil, point(1)
	f := ownership.NodeFacts{Me: "me", Now: noon, Record: v, Keep: spare}
	for seq := range uint64(200) {
		f.Copy.Points = append(f.Copy.Points, point(seq+1))
	}
	for i := range uint64(nodes - 1) {
		node := string(rune('a' + i)) //nolint:gosec // small
		v.Replicas = append(v.Replicas, ownership.Replica{Node: node, Point: point(10 * (i + 1))})
		for n := range uint64(held) {
			f.Copy.Holds = append(f.Copy.Holds, ownership.Hold{For: node, Point: point(100 + held*i + n), Until: noon.Add(time.Hour)})
		}
	}
	a, _ := ownership.TendRules.Rule("retain")(&f)
	if left := len(f.Copy.Points) - len(a.Points); a.Verb != ownership.Drop || left >= provision.MaxPoints {
		t.Errorf("%v leaves %d points, and a copy has %d at most", a.Verb, left, provision.MaxPoints)
	}
}
