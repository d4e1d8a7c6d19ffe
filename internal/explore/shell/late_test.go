package shell

import (
	"testing"
	"time"
)

// planOfLateTargets is the plan of a seed whose targets know a reservation again only when its node logs in, so that
// their class says that they forget it. Once the writer's node is cut off from everything, and the target restarts
// meanwhile.
func planOfLateTargets(seed uint64) plan {
	p, d := planOf(seed), rolled(seed, 4, "plan")
	p.persistent, p.late = false, true
	cut := event{at: warm + d.upTo(40*time.Second), lasts: d.between(5*time.Second, 40*time.Second), node: d.below(p.nodes), volume: d.below(p.volumes), owner: true}
	for _, what := range []fault{sanCut, apiCut, peersCut} {
		cut.what = what
		p.events = append(p.events, cut)
	}
	cut.what, cut.at, cut.owner = targetRestart, cut.at+d.upTo(3*time.Second), false
	p.events = inTime(append(p.events, cut))
	return p
}

func TestTheProductKeepsItsPromisesOnTargetsThatRememberLate(t *testing.T) {
	n := max(1, *schedules/scarcer)
	counts := explored(t, n, planOfLateTargets)
	for what, least := range map[string]uint64{"takeovers": 100, "target restarts": 90, "fences": 5} { // in a hundred schedules
		if was := counts[what]; uint64(was) < least*(n/100) { //nolint:gosec // a count
			t.Errorf("too little happens: %d %s", was, what)
		}
	}
}
