package owner_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

// event lets something happen besides the tasks.
func (f *fleet) event() {
	k := f.keepers[f.s.dice.IntN(len(f.keepers))]
	switch n := f.s.dice.IntN(200); {
	case n < 35:
		k.writes()
	case n < 65:
		if !k.slept {
			k.kubelet()
		}
	case n < 100:
		if !k.slept && (k.poked || f.s.chance(4)) {
			k.tends()
		}
	case n < 110:
		if !k.slept {
			f.s.begin(k.agent, "watch", func() { _ = k.owner.Watch(f.ctx) })
		}
	case n < 125:
		if !k.slept {
			f.s.begin(k.agent, "vouch", func() { _ = k.owner.Vouch(f.ctx) })
		}
	case n < 150:
		f.controls()
	case n < 172:
		f.ticks(time.Second * time.Duration(1+f.s.dice.IntN(5)))
	case n < 175:
		f.ticks(time.Duration(f.s.dice.IntN(3)) * ownership.Grace)
	default:
		f.fault(k, n-175)
	}
}

func (k *keeper) tends() {
	k.poked = false
	k.f.s.begin(k.agent, "tend", func() {
		if _, err := k.owner.Tend(k.f.ctx, theVolume); err != nil {
			k.poked = true
		}
	})
}

// ticks lets time pass. The guards of nodes that are awake have renewed all the time.
func (f *fleet) ticks(d time.Duration) {
	f.now += d
	for _, k := range f.keepers {
		if !k.slept && !k.fenced && !f.down && (f.now-k.renewed < ownership.SelfFenceAfter || d > ownership.SelfFenceAfter) {
			k.renewed = f.now
		}
		if !k.slept && f.now-k.renewed >= ownership.SelfFenceAfter {
			k.stops()
		}
	}
}

// stops is the guard that stops the writers.
func (k *keeper) stops() {
	if !k.fenced {
		k.fenced = true
		k.unmounts()
	}
}

func (f *fleet) fault(k *keeper, n int) {
	if !f.faulty || n < 20 && !f.s.chance(f.calm) {
		return
	}
	switch {
	case n < 4:
		f.s.end(k.agent)
		k.starts()
	case n < 7:
		f.s.end(k.agent)
		k.disk.PowerOff()
		k.boots()
	case n < 11:
		k.slept = true
	case n < 16:
		k.slept = k.slept && f.plot.sleeps(k)
	case n < 18:
		k.apart = !k.apart
	case n < 20:
		f.down = !f.down
	default:
		f.moves()
	}
}

// moves lets the pod end on its node, or a pod begin on another.
func (f *fleet) moves() {
	for _, k := range f.keepers {
		k.wanted = false
	}
	if !f.s.chance(4) {
		f.keepers[f.s.dice.IntN(len(f.keepers))].wanted = true
	}
}

// follow plays a schedule, and then lets all faults end.
func follow(ctx context.Context, seed uint64, nodes int, mistake copyMistakes) *fleet {
	f := newFleet(ctx, seed, nodes, mistake)
	of := func(t *task) *keeper {
		for _, k := range f.keepers {
			if k.agent == t.of {
				return k
			}
		}
		return nil
	}
	for range steps {
		if f.violation != "" {
			break
		}
		f.plot.passes(f)
		if f.s.chance(3) || !f.s.step(func(t *task) bool { k := of(t); return k != nil && !k.slept }) {
			f.event()
		}
	}
	if f.violation == "" {
		f.settle()
	}
	for _, k := range f.keepers {
		f.branches += len(k.state().Branches)
		f.s.end(k.agent)
	}
	return f
}

// settle ends the faults. The pod must then get its volume, where a replica is, and all copies come to be the same.
func (f *fleet) settle() {
	f.faulty, f.down = false, false
	var wanted *keeper
	for _, k := range f.keepers {
		k.slept, k.apart, k.wanted = false, false, false
		if f.now-k.renewed >= ownership.SelfFenceAfter {
			k.stops()
		}
	}
	for _, r := range f.current().Status.Ownership.Replicas { // the label of the volume keeps pods to its replicas
		for _, k := range f.keepers {
			if k.name == r.Node && r.State != v1alpha1.OwnedRemoving && r.State != v1alpha1.OwnedGone && (wanted == nil || f.s.chance(2)) {
				wanted = k
			}
		}
	}
	wanted.wanted = true
	wrote := false
	for round, rests := 0, 0; round < 150 && rests < 5 && f.violation == ""; round++ {
		rests++
		if f.atRest(wanted) != nil {
			rests = 0
		}
		if !wrote && f.has(wanted) {
			wanted.writes()
			wrote = true
		}
		for _, k := range f.keepers {
			k.kubelet()
			k.tends()
			f.s.begin(k.agent, "vouch", func() { _ = k.owner.Vouch(f.ctx) })
			f.s.begin(k.agent, "watch", func() { _ = k.owner.Watch(f.ctx) })
			if k.served && k.epoch.IsZero() { // the pod has a dead mount, and is ended
				k.served = false
			}
		}
		f.controls()
		for f.s.step(func(*task) bool { return true }) {
		}
		f.ticks(5 * time.Second)
	}
	if f.violation != "" {
		return
	}
	if err := f.atRest(wanted); err != nil {
		f.fail("rest: %v; the pod on %s was told: %v", err, wanted.name, wanted.said)
	}
}

func (f *fleet) has(k *keeper) bool {
	p := f.current().Status.Ownership.Primary
	return k.served && !k.epoch.IsZero() && p.Node == k.name && p.Phase == v1alpha1.PrimaryActive
}

// atRest says what is missing to rest: the pod has the volume, and as many copies as the factor says are the same
// as the pod's.
func (f *fleet) atRest(wanted *keeper) error {
	v := f.current().Status.Ownership
	if !f.has(wanted) {
		return fmt.Errorf("the pod on %s has no volume; the record says %s of %s in epoch %v", wanted.name, v.Primary.Phase, v.Primary.Node, v.Epoch)
	}
	content, same := wanted.disks.Read(theVolume), 0
	for _, r := range v.Replicas {
		for _, k := range f.keepers {
			if c := k.state(); k.name == r.Node && r.State == v1alpha1.OwnedReady && f.contents[c.Tip()] == content {
				same++
			}
		}
	}
	if same < 2 {
		return fmt.Errorf("%d copies are %q: the record has %+v", same, content, v.Replicas)
	}
	return nil
}

func TestOwnersOfCopiesLoseNothingThatIsCovered(t *testing.T) {
	total := copyOracle{}
	for nodes := 2; nodes <= 3; nodes++ {
		for seed := *from; seed < *from+*schedules; seed++ {
			f := follow(t.Context(), seed, nodes, copyMistakes{})
			if f.violation != "" {
				t.Fatalf("schedule %d with %d nodes: %s", seed, nodes, f.violation)
			}
			total.mounts += f.mounts
			total.takeovers += f.takeovers
			total.fences += f.fences
			total.released += f.released
			total.branches += f.branches
			total.received += f.received
		}
	}
	got := fmt.Sprintf("%d takeovers, %d mounts, %d fences, %d releases, %d streams, %d branches",
		total.takeovers, total.mounts, total.fences, total.released, total.received, total.branches)
	t.Log(got)
	if n := int(*schedules); total.takeovers < n || total.fences < n/10 || total.mounts < n || total.released < n || total.received < n || total.branches < n/10 {
		t.Errorf("too little happens: %s", got)
	}
}
