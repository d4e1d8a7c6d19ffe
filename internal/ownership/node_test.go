package ownership_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	. "berth.dev/berth/internal/ownership"
)

// The rules here only tell which chain has decided.
func TestTheKubeletIsAnsweredBeforeUpkeep(t *testing.T) {
	says := func(verb Verb, chain Reason) Chain[NodeFacts] {
		return Chain[NodeFacts]{{Name: "says", Decide: func(*NodeFacts) (Action, bool) { return Action{Verb: verb, Why: Why{Reason: chain}}, true }}}
	}
	const stage, unstage, tend = OwnsEpoch, NotWanted, Reporting
	both := func(f *NodeFacts) { f.Wanted, f.Unstaging = true, true }
	tests := map[string]struct {
		asks                 func(*NodeFacts)
		stage, unstage, tend Verb
		answer, do           verdict
	}{
		"nothing is asked":                    {func(*NodeFacts) {}, Mount, Unmount, Record, verdict{}, verdict{Record, tend}},
		"the volume is wanted":                {wanted, Mount, Unmount, Record, verdict{Mount, stage}, verdict{Mount, stage}},
		"it is wanted, and there is to wait":  {wanted, Wait, Unmount, Record, verdict{Wait, stage}, verdict{Record, tend}},
		"it is wanted, and mounted":           {wanted, Done, Unmount, Record, verdict{Done, stage}, verdict{Record, tend}},
		"it is wanted, in vain":               {wanted, Refuse, Unmount, Record, verdict{Refuse, stage}, verdict{Record, tend}},
		"it is wanted, in another epoch":      {wanted, GiveUp, Unmount, Record, verdict{Unmount, unstage}, verdict{Unmount, unstage}},
		"it is to be unstaged":                {func(f *NodeFacts) { f.Unstaging = true }, Mount, Unmount, Record, verdict{Unmount, unstage}, verdict{Unmount, unstage}},
		"it is to be unstaged, and it is so":  {func(f *NodeFacts) { f.Unstaging = true }, Mount, Done, Record, verdict{Done, unstage}, verdict{Record, tend}},
		"it is wanted again before the end":   {both, Mount, Unmount, Record, verdict{Mount, stage}, verdict{Mount, stage}},
		"nothing is asked, and an epoch ends": {func(*NodeFacts) {}, Mount, Unmount, GiveUp, verdict{}, verdict{Unmount, unstage}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := Node{Stage: says(tt.stage, stage), Unstage: says(tt.unstage, unstage), Tend: says(tt.tend, tend)}
			f := &NodeFacts{}
			tt.asks(f)
			answer, do := n.Next(f)
			got := [2]verdict{{answer.Verb, answer.Reason}, {do.Verb, do.Reason}}
			if diff := cmp.Diff([2]verdict{tt.answer, tt.do}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
