package ownership_test

import (
	"testing"

	. "berth.dev/berth/internal/ownership"
)

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
