package ownership_test

import (
	"testing"

	. "berth.dev/berth/internal/ownership"
)

func TestAReplicaThatIsGoneLeavesTheRecord(t *testing.T) {
	a := OverseeRules.Decide(overseeing(volume(state("b", Gone))))
	expect(t, a, verdict{Record, CopyGone})
	if a.Next == nil || len(a.Next.Replicas) != 2 || a.Next.Replicas[0].Node != "a" || a.Next.Replicas[1].Node != "c" {
		t.Errorf("the record is %+v", a.Next)
	}
}

// An attachment that works is taken from a node that is leaving when enough work on nodes that stay and answer.
func TestAnAttachmentLeavesItsNodeWhenEnoughOthersAnswer(t *testing.T) {
	four := func(v *Volume) {
		v.Sharing.MaxShares = 5
		v.Replicas = append(v.Replicas, Replica{Node: "d", State: Ready})
	}
	for silent, want := range map[bool]verdict{false: {Record, TooManyReplicas}, true: {Nothing, Settled}} {
		a := OverseeRules.Decide(overseeing(volume(owned(Active), shared, four), func(f *ControllerFacts) {
			f.Witnesses, f.Wanted = nil, []string{"c"} // a wanted one is never taken
			f.Nodes[2].Lost = silent
			f.Nodes = append(f.Nodes, Machine{Name: "d", Leaving: true})
		}))
		if got := (verdict{a.Verb, a.Reason}); got != want {
			t.Errorf("silent %v: %v, %v: %s", silent, a.Verb, a.Reason, a.Message())
		}
	}
}

func TestOneNodeThatLooksLostIsNoMassFailure(t *testing.T) {
	machines := func(lost, all int) (nodes []Machine) {
		for i := range all {
			nodes = append(nodes, Machine{Lost: i < lost})
		}
		return nodes
	}
	for _, tt := range []struct {
		lost, all int
		holds     bool
	}{{0, 1, false}, {1, 1, false}, {1, 2, false}, {2, 3, true}, {2, 5, true}, {2, 6, false}, {3, 8, true}, {3, 9, false}} {
		if got := BrakeHolds(machines(tt.lost, tt.all)); got != tt.holds {
			t.Errorf("%d of %d look lost: the brake holds is %v", tt.lost, tt.all, got)
		}
	}
}

// An attachment that failed once may yet succeed, and one that is ready has succeeded.
func TestAnAttachmentIsMadeElsewhereOnlyIfItFailedForGood(t *testing.T) {
	tests := map[string]struct {
		state State
		tries int
		want  verdict
	}{
		"it is ready":                          {Ready, 0, verdict{Nothing, Settled}},
		"it is ready, and failed often before": {Ready, 5, verdict{Nothing, Settled}},
		"it failed once":                       {Failed, 1, verdict{Nothing, Settled}},
		"it failed again":                      {Failed, 2, verdict{Record, TooFewReplicas}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := volume(owned(Active), shared, func(v *Volume) { v.Sharing.MaxShares = 4 }, entry("b", func(r *Replica) { r.State, r.Tries = tt.state, tt.tries }))
			a := OverseeRules.Decide(overseeing(v, func(f *ControllerFacts) {
				f.Witnesses = nil
				f.Nodes = append(f.Nodes, Machine{Name: "d", Fits: true, Slots: 1})
			}))
			expect(t, a, tt.want)
			if a.Next == nil {
				return
			}
			if e, has := a.Next.Replica("d"); !has || e.State != Reserved {
				t.Errorf("it is to be made as %v", e)
			}
		})
	}
}
