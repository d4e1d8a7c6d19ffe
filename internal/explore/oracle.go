package explore

import (
	"slices"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// The judgements here are made from the truth of the world, with code of their own: a check that
// called the function that it judges would be wrong in the same way.

// massLoss tells whether so many nodes are out of controller c's sight that it must not fence by
// itself: more than a third, and at least two. A deleted Node is no node of the cluster.
func (w recordJudge) massLoss(c int) bool {
	unseen, all := 0, 0
	for j := range w.cfg.Nodes {
		if w.nodes[j].deleted {
			continue
		}
		all++
		if w.outOfSight(c, j) {
			unseen++
		}
	}
	return unseen > 1 && unseen > all/3
}

// outOfSight counts who would notice that node j is alive: the controller, the other nodes that the
// controller reaches, and j's lease as it really is, which a controller that has just started has
// not watched.
func (w recordJudge) outOfSight(c, j int) bool {
	const outdated = 10 * time.Second
	who, sees, blind := maxNodes+c, 0, 0
	vote := func(alive bool) {
		if alive {
			sees++
		} else {
			blind++
		}
	}
	vote(w.answers(who, j))
	vote(w.nodes[j].sinceStored < outdated)
	for k := range w.cfg.Nodes {
		if k != j && w.answers(who, k) {
			vote(w.answers(k, j))
		}
	}
	return blind > sees
}

// ordered tells whether an administrator's order or the primary's own word about its end lets the
// controller fence although the brake holds.
func (w recordJudge) ordered(v *ownership.Volume) bool {
	i := indexOf(v.Primary.Node)
	if i < 0 {
		return false
	}
	for _, e := range v.Replicas {
		if e.Node == v.Primary.Node && e.Unstaged == v.Epoch {
			return true
		}
	}
	return w.nodes[i].tainted
}

// knows tells whether an epoch was opened in this history.
func knows(l lineage.Lineage, e lineage.Epoch) bool {
	return slices.ContainsFunc(l, func(b lineage.Branch) bool { return b.Epoch == e })
}

// partOfVolume tells whether the data that a snapshot had when it was taken is a past of what was
// acknowledged.
func (w copyJudge) partOfVolume(p lineage.Point) bool {
	c, ok := w.truth.data(p)
	return ok && w.truth.last.includes(c)
}

// phaseSteps and stateSteps are the charts of docs/ownership.md.
var phaseSteps = map[ownership.Phase][]ownership.Phase{
	ownership.Released:  {ownership.Preparing},
	ownership.Preparing: {ownership.Active, ownership.Released, ownership.Fenced},
	ownership.Active:    {ownership.Released, ownership.Fenced},
	ownership.Fenced:    {ownership.Preparing},
}

var stateSteps = map[ownership.State][]ownership.State{
	ownership.Reserved: {ownership.Syncing, ownership.Ready, ownership.Failed, ownership.Removing},
	ownership.Syncing:  {ownership.Ready, ownership.Lagging, ownership.Diverged, ownership.Failed, ownership.Lost, ownership.Removing},
	ownership.Ready:    {ownership.Lagging, ownership.Diverged, ownership.Syncing, ownership.Lost, ownership.Failed, ownership.Removing},
	ownership.Lagging:  {ownership.Ready, ownership.Diverged, ownership.Syncing, ownership.Lost, ownership.Failed, ownership.Removing},
	ownership.Diverged: {ownership.Syncing, ownership.Ready, ownership.Lagging, ownership.Lost, ownership.Removing},
	ownership.Failed:   {ownership.Syncing, ownership.Removing},
	ownership.Lost:     {ownership.Syncing, ownership.Ready, ownership.Lagging, ownership.Removing},
	ownership.Removing: {ownership.Syncing, ownership.Gone},
	ownership.Gone:     {},
}

func steps[S comparable](chart map[S][]S, old, now S) bool {
	return old == now || slices.Contains(chart[old], now)
}
