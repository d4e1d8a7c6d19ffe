package owner

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// pulls carries out that a point is to be fetched from b.
func (b *bench) pulls(t *testing.T, v *ownership.Volume, to lineage.Point) error {
	t.Helper()
	l := &look{id: volume}
	l.facts.Record, l.facts.Now, l.facts.Copy.Promise.Epoch = v, noon, two
	more, err := b.c.Medium.carryOut(t.Context(), b.Owner, l, ownership.Action{Verb: ownership.Pull, From: "b", Base: point(1), To: to})
	if more {
		t.Error("another decision follows at once")
	}
	return err
}

func TestAStreamIsAskedForOnceItIsKeptHowOldItIs(t *testing.T) {
	for name, test := range map[string]struct {
		fails error
		pause time.Duration
		told  int
	}{
		"it arrives":                    {},
		"it fails":                      {fails: errBroken, pause: movePause, told: 1},
		"it was cut, and goes on":       {fails: wire.Errorf(wire.Cut, "cut"), pause: movePause, told: 1},
		"it is not needed any more":     {fails: errNotNeeded, told: 1},
		"the sender has no such volume": {fails: wire.Errorf(wire.NotReplica, "no"), pause: movePause, told: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofCopies, ownership.Node{})
			b.fails["Fetch"] = test.fails
			if err := b.pulls(t, copied(), point(2)); err != nil || b.effects() != "Store" || len(b.behind) != 1 {
				t.Fatalf("%v, after %q, and %d streams are under way", err, b.effects(), len(b.behind))
			}
			if age, known := b.world.kept.Age(point(2), noon); age != 0 || !known {
				t.Errorf("the point is %v old, known %v", age, known)
			}
			var fetch context.Context
			b.pools.during = func(ctx context.Context) {
				if fetch = ctx; ctx.Err() != nil {
					t.Errorf("it ends too early: %v", context.Cause(ctx))
				}
			}
			b.behind[0](t.Context())
			if want := (Fetch{Volume: volume, From: "b", Epoch: two, Base: point(1), To: point(2), Awaited: true}); b.pools.fetched != want {
				t.Errorf("asked for %+v", b.pools.fetched)
			}
			if !slices.Equal(b.pokes, []time.Duration{test.pause}) || len(b.log) != test.told {
				t.Errorf("the rules go on after %v, told %q", b.pokes, b.log)
			}
			b.hint(func(h *hint) {
				if h.moving || !errors.Is(h.failed, test.fails) || h.end != nil {
					t.Errorf("remembered is %+v", h)
				}
			})
			if fetch.Err() == nil {
				t.Error("what the stream began does not end with it")
			}
		})
	}
}

func TestAStreamIsAwaitedWhereAPodWaitsForTheVolume(t *testing.T) {
	for name, test := range map[string]struct {
		primary      string
		phase        ownership.Phase
		wanted, want bool
	}{
		"this node is about to write":   {"a", ownership.Preparing, false, true},
		"a kubelet asks for the volume": {"b", ownership.Released, true, true},
		"another node writes":           {"b", ownership.Active, false, false},
		"this node wrote last":          {"a", ownership.Released, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofCopies, ownership.Node{})
			l := &look{id: volume}
			l.facts.Record, l.facts.Now, l.facts.Wanted = copied(), noon, test.wanted
			l.facts.Record.Primary = ownership.Primary{Node: test.primary, Phase: test.phase}
			if _, err := b.c.Medium.carryOut(t.Context(), b.Owner, l, ownership.Action{Verb: ownership.Pull, From: "b", To: point(2)}); err != nil {
				t.Fatal(err)
			}
			b.behind[0](t.Context())
			if b.pools.fetched.Awaited != test.want {
				t.Errorf("asked for %+v", b.pools.fetched)
			}
		})
	}
}

func TestAHalfThatIsHereIsCompletedBeforeANewerPointIsAskedFor(t *testing.T) {
	half := provision.Receiving{Base: point(1), Target: point(2), From: "b", Token: "token"}
	for name, test := range map[string]struct {
		edit func(r *provision.Receiving)
		want lineage.Point
	}{
		"the half can go on":                      {func(*provision.Receiving) {}, point(2)},
		"it is from another node":                 {func(r *provision.Receiving) { r.From = "c" }, point(3)},
		"it begins elsewhere":                     {func(r *provision.Receiving) { r.Base = lineage.Point{} }, point(3)},
		"it cannot be resumed":                    {func(r *provision.Receiving) { r.Token = "" }, point(3)},
		"the volume does not hold its target now": {func(r *provision.Receiving) { r.Target = lineage.Point{Epoch: three, Seq: 2} }, point(3)},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofCopies, ownership.Node{})
			l := &look{id: volume}
			l.facts.Record, l.facts.Now, l.replica.Receiving = copied(), noon, new(half)
			test.edit(l.replica.Receiving)
			if _, err := b.c.Medium.carryOut(t.Context(), b.Owner, l, ownership.Action{Verb: ownership.Pull, From: "b", Base: point(1), To: point(3)}); err != nil {
				t.Fatal(err)
			}
			b.behind[0](t.Context())
			if b.pools.fetched.To != test.want {
				t.Errorf("asked for %v", b.pools.fetched.To)
			}
		})
	}
}

// What has come after an hour is as old as its first byte.
func TestAPointThatIsAskedForAgainIsNotYounger(t *testing.T) {
	b := onBench(t, ofCopies, ownership.Node{})
	for _, at := range []time.Time{noon, noon.Add(time.Hour)} {
		l := &look{id: volume, kept: b.world.kept}
		l.facts.Record, l.facts.Now = copied(), at
		if _, err := b.c.Medium.carryOut(t.Context(), b.Owner, l, ownership.Action{Verb: ownership.Pull, From: "b", Base: point(1), To: point(2)}); err != nil {
			t.Fatal(err)
		}
		b.behind[len(b.behind)-1](t.Context())
	}
	if age, known := b.world.kept.Age(point(2), noon.Add(time.Hour)); age != time.Hour || !known {
		t.Errorf("the point is %v old, known %v", age, known)
	}
}

func TestAStreamDoesNotWaitLongForAVolumeThatIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := onBench(t, ofCopies, ownership.Node{})
		b.world.object = recorded(v1alpha1.Replication{Kind: v1alpha1.ReplicationSnapshots, Factor: 2})
		unlock, err := b.c.Locks.Lock(t.Context(), volume)
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		began := time.Now()
		_, err = b.Stock(shop{}).Open(t.Context(), wire.Want{Stream: wire.Stream{Volume: volume, To: "b"}})
		if wire.ReasonOf(err) != wire.Busy || time.Since(began) != lockWithin {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestAStreamWhoseAgeCannotBeKeptIsNotAskedFor(t *testing.T) {
	b := onBench(t, ofCopies, ownership.Node{})
	b.fails["Store"] = errBroken
	if err := b.pulls(t, copied(), point(2)); !errors.Is(err, errBroken) || len(b.behind) > 0 {
		t.Errorf("%v, and %d streams are under way", err, len(b.behind))
	}
	delete(b.fails, "Store")
	if err := b.pulls(t, copied(), point(2)); err != nil || len(b.behind) != 1 {
		t.Errorf("later: %v, and %d streams are under way", err, len(b.behind))
	}
}

func TestANewerPointWaitsForTheStreamThatIsUnderWayUnlessItIsNotNeeded(t *testing.T) {
	for name, test := range map[string]struct {
		first lineage.Point
		over  bool
	}{
		"the volume holds its point":         {point(2), false},
		"the volume does not hold its point": {lineage.Point{Epoch: three, Seq: 2}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofCopies, ownership.Node{})
			if err := b.pulls(t, copied(), test.first); err != nil {
				t.Fatal(err)
			}
			b.pools.during = func(ctx context.Context) {
				if ctx.Err() != nil {
					t.Errorf("the first one ends by itself: %v", context.Cause(ctx))
				}
				if err := b.pulls(t, copied(), point(3)); err != nil || len(b.behind) != 1 {
					t.Errorf("%v, and %d streams are under way", err, len(b.behind))
				}
				if over := errors.Is(context.Cause(ctx), errNotNeeded); over != test.over {
					t.Errorf("the first one is ended: %v", over)
				}
			}
			b.behind[0](t.Context())
			if err := b.pulls(t, copied(), point(3)); err != nil || len(b.behind) != 2 {
				t.Errorf("after it: %v, and %d streams have begun", err, len(b.behind))
			}
		})
	}
}

func TestAStreamEndsWithItsAgentAndNotWithTheCallThatBeganIt(t *testing.T) {
	b := onBench(t, ofCopies, ownership.Node{})
	call, answered := context.WithCancel(t.Context())
	l := &look{id: volume}
	l.facts.Record = copied()
	if _, err := b.c.Medium.carryOut(call, b.Owner, l, ownership.Action{Verb: ownership.Pull, From: "b", To: point(2)}); err != nil {
		t.Fatal(err)
	}
	answered()
	agent, end := context.WithCancelCause(t.Context())
	b.pools.during = func(ctx context.Context) {
		if ctx.Err() != nil {
			t.Error("it ends with the call")
		}
		end(errBroken)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), errBroken) {
			t.Errorf("it ends because of %v", context.Cause(ctx))
		}
	}
	b.fails["Fetch"] = errBroken
	if b.behind[0](agent); len(b.log) > 0 {
		t.Errorf("the end of the agent is told as a failure: %q", b.log)
	}
}

// shop is a stock that answers as a test says.
type shop struct{ fails error }

func (s shop) Open(context.Context, wire.Want) (stream.Source, error) { return nil, s.fails }

func TestWhatANodeDoesNotSend(t *testing.T) {
	copies := v1alpha1.Replication{Kind: v1alpha1.ReplicationSnapshots, Factor: 2}
	disk := v1alpha1.Replication{Kind: v1alpha1.ReplicationAttachments, Factor: 2, Attachments: &v1alpha1.Attachments{MaxShares: 2}}
	for name, test := range map[string]struct {
		of    v1alpha1.Replication
		to    string
		fails error
		want  wire.Reason
	}{
		"a shared disk":       {of: disk, to: "b", want: wire.NotReplica},
		"to a controller":     {of: copies, to: cert.Controllers, want: wire.NotReplica},
		"a point that is not": {of: copies, to: "b", fails: wire.Errorf(wire.Busy, "no"), want: wire.Busy},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofCopies, ownership.Node{})
			b.world.object = recorded(test.of)
			_, err := b.Stock(shop{test.fails}).Open(t.Context(), wire.Want{Stream: wire.Stream{Volume: volume, To: test.to}})
			if err == nil || wire.ReasonOf(err) != test.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

// recorded is a Volume with a record that counts replicas on the nodes a and b, of which a owns it.
func recorded(r v1alpha1.Replication) *v1alpha1.Volume {
	v := &v1alpha1.Volume{Spec: v1alpha1.VolumeSpec{Replication: r}}
	v.Name = volume
	e := v1alpha1.Epoch{Number: 2, ID: "two"}
	v.Status.Ownership = &v1alpha1.Ownership{
		Epoch: e, Primary: v1alpha1.Primary{Node: "a", Boot: "boot", Phase: v1alpha1.PrimaryActive},
		Lineage:  []v1alpha1.Branch{{Epoch: v1alpha1.Epoch{Number: 1, ID: "one"}}, {Epoch: e, From: &v1alpha1.Point{Epoch: v1alpha1.Epoch{Number: 1, ID: "one"}, Seq: 9}}},
		Replicas: []v1alpha1.OwnedReplica{{Node: "a", State: v1alpha1.OwnedReady}, {Node: "b", State: v1alpha1.OwnedReady}},
	}
	return v
}

func TestHowOldTheDataOfANodeIsAndWhetherItConfirms(t *testing.T) {
	held := ownership.Copy{Exists: true, Points: []lineage.Point{point(2), point(3)}}
	condemned := held
	condemned.Condemned = true
	leaves := copied()
	leaves.Replicas[1].State = ownership.Removing
	for name, test := range map[string]struct {
		record    *ownership.Volume
		copy      ownership.Copy
		seen      bool
		fails     map[string]error
		age       time.Duration
		want      string
		confirmed bool
		err       error
	}{
		"an asker that stays":                  {record: copied(), copy: held, seen: true, age: time.Minute},
		"an asker that leaves":                 {record: leaves, copy: held, seen: true, age: time.Minute, want: "Hold 3 for b", confirmed: true},
		"the point cannot be held":             {record: leaves, copy: held, seen: true, age: time.Minute, fails: map[string]error{"Hold": errBroken}, want: "Hold 3 for b", err: errBroken},
		"this copy is to go as well":           {record: leaves, copy: condemned, seen: true, age: time.Minute},
		"this copy has nothing of the volume":  {record: leaves, copy: ownership.Copy{Exists: true}, age: unknownAge},
		"no one knows when the point was made": {record: copied(), copy: held, age: unknownAge},
		"a controller asks":                    {copy: held, seen: true, age: time.Minute, want: "Read"},
		"and there is no record to compare":    {copy: held, seen: true, fails: map[string]error{"Read": provision.ErrUnavailable}, age: unknownAge, want: "Read"},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofCopies, ownership.Node{})
			b.world.object = recorded(v1alpha1.Replication{Kind: v1alpha1.ReplicationSnapshots, Factor: 2})
			maps.Copy(b.fails, test.fails)
			l, p := &look{id: volume}, &ownership.Peer{Copy: test.copy}
			if test.seen {
				l.kept.Saw(point(3), noon.Add(-time.Minute), held.Has)
			}
			err := b.c.Medium.answer(t.Context(), b.Owner, l, "b", test.record, p)
			if !errors.Is(err, test.err) || p.Age != test.age || p.Confirmed != test.confirmed || b.effects() != test.want {
				t.Errorf("age %v, confirmed %v, %v, after %q", p.Age, p.Confirmed, err, b.effects())
			}
		})
	}
}
