package owner_test

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/record"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// calmFleet is a cluster of nodes without faults.
func calmFleet(t *testing.T, nodes int) *fleet {
	t.Helper()
	f := newFleet(t.Context(), 1, nodes, copyMistakes{})
	f.faulty, f.keepers[0].wanted = false, false
	t.Cleanup(func() {
		if f.violation != "" {
			t.Error(f.violation)
		}
		for _, k := range f.keepers {
			f.s.end(k.agent)
		}
	})
	f.works(6)
	return f
}

// works lets all agents and the controller work, without a call of the kubelet.
func (f *fleet) works(rounds int) {
	for range rounds {
		for _, k := range f.keepers {
			k.tends()
			f.s.begin(k.agent, "vouch", func() { _ = k.owner.Vouch(f.ctx) })
			f.s.begin(k.agent, "watch", func() { _ = k.owner.Watch(f.ctx) })
		}
		f.finish()
		f.controls()
		f.ticks(1e9)
	}
}

func (f *fleet) finish() {
	for f.s.step(func(*task) bool { return true }) {
	}
}

// does makes a call in a node's agent and returns its error.
func (k *keeper) does(call func() error) (err error) {
	k.f.effects, err = nil, errDead
	k.f.s.begin(k.agent, "call", func() { err = call() })
	k.f.finish()
	return err
}

func TestACopyIsTakenInTheOrderOfTheProtocol(t *testing.T) {
	f := calmFleet(t, 2)
	a, b := f.keepers[0], f.keepers[1]
	for _, k := range f.keepers {
		if s := k.state(); len(s.Points) != 1 || s.Tip() != (lineage.Point{Epoch: lineage.Epoch{Number: 1, ID: "first"}, Seq: 1}) {
			t.Fatalf("%s holds %v, and the first snapshot is to be on both nodes", k.name, s.Points)
		}
	}
	must(t, a.does(func() error { return a.owner.Take(f.ctx, theVolume, a.mounts) }))
	// Epoch, promise, opened, Active, the head, then the guard, and that pods may have it.
	if got, want := changing(f.effects), "Replace Mark Mark Replace Writable OpenEpoch Store"; got != want {
		t.Errorf("taken by %s, want %s", got, want)
	}
	a.writes()
	f.ticks(2 * 60e9)
	f.works(6)
	if s := b.state(); f.contents[s.Tip()] != a.disks.Read(theVolume) || s.Promise.Primary != "a" {
		t.Errorf("an interval later b has %q of %q, promised to %s", f.contents[s.Tip()], a.disks.Read(theVolume), s.Promise.Primary)
	}
}

// lent is a stock that counts what it opens.
type lent struct{ opened int }

func (l *lent) Open(context.Context, wire.Want) (stream.Source, error) {
	l.opened++
	return nil, nil
}

func TestANodeSendsOnlyToNodesThatTheRecordNames(t *testing.T) {
	f := calmFleet(t, 2)
	a, l := f.keepers[0], &lent{}
	asks := func(volume, to string) error {
		return a.does(func() error {
			_, err := a.owner.Stock(l).Open(f.ctx, wire.Want{Stream: wire.Stream{Volume: volume, To: to}})
			return err
		})
	}
	for _, stranger := range []string{"z", ""} {
		if err := asks(theVolume, stranger); wire.ReasonOf(err) != wire.NotReplica {
			t.Errorf("node %q gets a stream: %v", stranger, err)
		}
	}
	if err := asks("../pvc", "b"); wire.ReasonOf(err) != wire.NotReplica {
		t.Errorf("a stream of no volume: %v", err)
	}
	f.down = true
	if err := asks(theVolume, "b"); wire.ReasonOf(err) != wire.Busy {
		t.Errorf("a stream, though the record cannot be read: %v", err)
	}
	f.down = false
	if err := asks(theVolume, "b"); err != nil || l.opened != 1 {
		t.Errorf("a replica's node gets no stream: %v, opened %d", err, l.opened)
	}
}

func TestAPeerSaysHowOldItsDataIsAndConfirmsOnlyToANodeThatLeaves(t *testing.T) {
	f := calmFleet(t, 2)
	b := f.keepers[1]
	f.ticks(600e9)
	var p ownership.Peer
	ask := func() error {
		return b.does(func() (err error) {
			var may bool
			if p, may, err = b.owner.Peer(f.ctx, theVolume, "a"); err == nil && !may {
				err = errors.New("it may not ask")
			}
			return err
		})
	}
	must(t, ask())
	if p.Confirmed || p.Age < 600e9 || p.Age > 700e9 || len(p.Copy.Points) != 1 {
		t.Errorf("b answers %+v", p)
	}
	v := f.current().DeepCopy()
	for i := range v.Status.Ownership.Replicas {
		if e := &v.Status.Ownership.Replicas[i]; e.Node == "a" {
			e.State = "Removing"
		}
	}
	f.put(v)
	must(t, ask())
	if s := b.state(); !p.Confirmed || len(s.Holds) == 0 {
		t.Errorf("b confirms %v, and holds %v", p.Confirmed, s.Holds)
	}
}

func TestWhatANodeReceivedHalfGoesWithItsVolume(t *testing.T) {
	f := newFleet(t.Context(), 1, 2, copyMistakes{})
	a, b := f.keepers[0], f.keepers[1]
	f.faulty, a.wanted, b.apart = false, false, true
	f.works(6)
	must(t, a.does(func() error { return a.owner.Take(f.ctx, theVolume, a.mounts) }))
	a.writes()
	f.ticks(2 * time.Minute)
	f.works(6)
	s := a.state()
	sent, err := conformance.Send(t.Context(), a.replicator(), provision.SendRequest{Volume: theVolume, Target: s.Tip()})
	must(t, err)
	sent.Bytes = sent.Bytes[:len(sent.Bytes)-16]
	if err := conformance.Receive(t.Context(), b.replicator(), sent); err == nil || b.state().Receiving == nil || b.disks.Places() == 0 {
		t.Fatalf("b has %+v of a stream that was cut: %v", b.state(), err)
	}
	a.kubelet()
	f.works(3)
	v := f.current().DeepCopy()
	v.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	f.put(v)
	for range 3 {
		f.works(10)
		f.ticks(2 * ownership.Grace)
	}
	for _, k := range f.keepers {
		if _, err := memory.New(k.disks, nil).Get(t.Context(), theVolume); !errors.Is(err, provision.ErrNotFound) || k.disks.Places() > 0 {
			t.Errorf("node %s still has the volume, %v, and %d parts of its data", k.name, err, k.disks.Places())
		}
	}
}

// lives has the nodes that are awake work for as long as n snapshots take.
func (f *fleet) lives(n int) {
	for range n {
		f.keepers[0].writes()
		f.ticks(2 * time.Minute)
		for _, k := range f.keepers {
			if !k.slept {
				k.tends()
			}
		}
		f.finish()
		f.controls()
		f.controls()
	}
}

func TestANodeThatIsAwayStopsNeitherSnapshotsNorTheReleaseOfTheVolume(t *testing.T) {
	f := calmFleet(t, 3)
	a, b, c := f.keepers[0], f.keepers[1], f.keepers[2]
	must(t, a.does(func() error { return a.owner.Take(f.ctx, theVolume, a.mounts) }))
	a.served = true
	f.lives(3)
	left := b.state()
	b.slept = true
	f.lives(2 * provision.MaxPoints)
	as, cs := a.state(), c.state()
	if tip := as.Tip(); tip.Seq < provision.MaxPoints || cs.Tip().Seq+1 < tip.Seq || len(as.Points) > 10 || len(cs.Points) > 10 {
		t.Errorf("a holds %v, and c %v", as.Points, cs.Points)
	}
	a.kubelet()
	f.finish()
	r, err := record.From(f.current())
	must(t, err)
	if a.said != nil || a.served || r.Primary.Phase != ownership.Released {
		t.Errorf("the pod's node says %v, and the volume is %v", a.said, r.Primary.Phase)
	}
	b.slept = false
	f.works(10)
	if as, bs := a.state(), b.state(); bs.Tip() != as.Tip() || !bs.Has(left.Tip()) {
		t.Errorf("b had %v and has %v, and is to follow from there to %v", left.Points, bs.Points, as.Tip())
	}
}

func TestAStandbyThatIsFullFollowsAgain(t *testing.T) {
	f := calmFleet(t, 2)
	a, b := f.keepers[0], f.keepers[1]
	must(t, a.does(func() error { return a.owner.Take(f.ctx, theVolume, a.mounts) }))
	move := func() {
		as, bs := a.state(), b.state()
		sent, err := conformance.Send(t.Context(), a.replicator(), provision.SendRequest{Volume: theVolume, Base: bs.Tip(), Target: as.Tip()})
		must(t, err)
		must(t, conformance.Receive(t.Context(), b.replicator(), sent))
	}
	f.lives(1)
	b.slept = true
	for len(b.state().Points) < provision.MaxPoints {
		f.lives(1)
		move()
	}
	f.lives(1)
	b.slept = false
	f.works(3)
	if as, bs := a.state(), b.state(); bs.Tip() != as.Tip() || len(bs.Points) > 10 {
		t.Errorf("a is at %v, and b holds %v", as.Tip(), bs.Points)
	}
}
