package shell

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// planOfTogether is the plan of a seed in which two pods write each disk at once.
func planOfTogether(seed uint64) plan {
	p, d := planOf(seed), rolled(seed, 5, "plan")
	p.together, p.persistent, p.known = true, true, d.chance(2)
	if d.chance(3) {
		p.writers, p.nodes, p.shares = 3, max(p.nodes, 4), max(p.shares, 3)
	}
	return p
}

// pods are how many pods use a volume.
func (p *plan) pods() int {
	switch {
	case p.writers > 0:
		return p.writers
	case p.together:
		return 2
	}
	return 1
}

// writerOn is what a record says of a node as a writer; nothing if it has never been one.
func writerOn(r *v1alpha1.Ownership, node string) v1alpha1.Writer {
	if r == nil {
		return v1alpha1.Writer{}
	}
	for _, x := range r.Writers {
		if x.Node == node {
			return x
		}
	}
	if len(r.Writers) == 0 && r.Primary.Node == node {
		return v1alpha1.Writer{Node: node, Phase: r.Primary.Phase, Epoch: r.Epoch}
	}
	return v1alpha1.Writer{}
}

func inEpoch(x v1alpha1.Writer) lineage.Epoch {
	return lineage.Epoch{Number: uint64(x.Epoch.Number), ID: x.Epoch.ID}
}

// several judges a write of the record of a disk that several nodes write, before it is stored.
func (o *oracle) several(who string, was, is *v1alpha1.Ownership, volume string) {
	can, executed := map[string]bool{}, 0
	for _, x := range is.Writers {
		can[x.Node] = o.writes(volume, x.Node, inEpoch(x))
		o.w.tells(who, "writes the record of %s: %s of %q in epoch %v", o.w.short(volume), x.Phase, x.Node, inEpoch(x))
	}
	for _, v := range o.w.volumes {
		if v.name == volume {
			log, _ := v.target.Log() // logs judges an error
			executed = len(log)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if was == nil {
		return
	}
	for _, x := range was.Writers {
		if open := x.Phase == v1alpha1.PrimaryActive || x.Phase == v1alpha1.PrimaryPreparing; open && writerOn(is, x.Node).Node == "" {
			o.fails("%s forgets that %s is %s in epoch %v of %s", who, x.Node, x.Phase, inEpoch(x), volume)
		}
	}
	for _, x := range is.Writers {
		before := writerOn(was, x.Node)
		if before.Phase != x.Phase || before.Epoch != x.Epoch {
			o.phase(who, volume, before, x, can[x.Node], executed)
		}
	}
}

// phase judges a step of one writer. It is called with the oracle's lock.
func (o *oracle) phase(who, volume string, before, x v1alpha1.Writer, writes bool, executed int) {
	e := inEpoch(x)
	if x.Epoch.Number < before.Epoch.Number && !o.back[volume] {
		o.fails("%s takes the record of %s back from epoch %v of %s to %v", who, volume, inEpoch(before), x.Node, e)
	}
	switch x.Phase {
	case v1alpha1.PrimaryActive:
		if node, known := o.owners[e.ID]; known && node != x.Node {
			o.fails("epoch %v is %s's and %s's", e, node, x.Node)
		}
		if _, over := o.over[e]; over && !o.back[volume] {
			o.fails("%s calls epoch %v of %s active, and it was over", who, e, volume)
		}
		delete(o.over, e)
		o.owners[e.ID] = x.Node
	case v1alpha1.PrimaryPreparing:
		o.counts["takeovers"]++
		o.begins(volume + " of " + x.Node)
	case v1alpha1.PrimaryFenced:
		o.counts["fences"]++
		if o.over[e] = executed; writes {
			o.fails("%s calls %s fenced in epoch %v of %s, and it can write", who, x.Node, e, volume)
		}
	case v1alpha1.PrimaryReleased:
		o.counts["releases"]++
		if o.over[e] = executed; writes {
			o.fails("%s releases %s, and a pod on %s can write in epoch %v", who, volume, x.Node, e)
		}
	}
}

// expels judges a reservation for all that are registered.
func (o *oracle) expels(p *process, expect, key ownership.RawKey) {
	o.w.tells(p.name, "has the disk reserved under %#x, without %#x", uint64(key), uint64(expect))
	if expect != 0 {
		o.w.count("registrations removed")
	}
}

func TestTheProductKeepsItsPromisesOfDisksThatSeveralNodesWrite(t *testing.T) {
	n := max(1, *schedules/scarcer)
	counts := explored(t, n, planOfTogether)
	for what, least := range map[string]uint64{ // in a hundred schedules
		"takeovers": 300, "registrations removed": 60, "refused writes": 30, "re-logins": 20, "fences": 5,
	} {
		if was := counts[what]; uint64(was) < least*(n/100) { //nolint:gosec // a count
			t.Errorf("too little happens: %d %s", was, what)
		}
	}
}
