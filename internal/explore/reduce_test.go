//go:build !race

package explore

import "testing"

// reach explores and gives the key of every state, reduced and without names.
// The full run tells states apart by everything in them and reduces nothing.
func reach(b Bounds, rules *Rules, full bool) (map[[2]uint64]bool, Explored) {
	out := map[[2]uint64]bool{}
	c := canon{ahead: b.horizon()}
	p := dump{versions: b.Restores > 0}
	s := newSearch(b)
	s.reduced = !full
	s.key = func(w *World) [2]uint64 {
		n := *w
		n.reduce(&c.ahead, nil)
		k := c.key(&n)
		out[k] = true
		if full {
			return p.key(w)
		}
		return k
	}
	return out, s.run(rules, Watch{})
}

// tiny are bounds that a run which reduces nothing can exhaust.
func tiny() []Named {
	return []Named{
		{"a pod comes and crashes", Bounds{Config: snapshots(2, 2), Writes: 1, Wants: 1, Crashes: 1}},
		{"two pods take turns", Bounds{Config: snapshots(2, 2), Writes: 1, Wants: 2}},
		{"two snapshots", Bounds{Config: snapshots(2, 2), Writes: 2, Wants: 1}},
		{"two crashes", Bounds{Config: snapshots(2, 2), Wants: 1, Outages: 2, Controllers: 1, Prompt: true}},
		{"a failover", Bounds{Config: snapshots(2, 2), Wants: 2, PowerOffs: 1, Controllers: 1, Prompt: true}},
		{"a failover with a delay", Bounds{Config: snapshots(2, 2), Writes: 1, Wants: 1, PowerOffs: 1, Controllers: 1, Prompt: true, Delays: 1}},
		{"three nodes", Bounds{Config: snapshots(3, 3), Writes: 1, Wants: 1}},
		{"three nodes and a prompt crash", Bounds{Config: snapshots(3, 3), Writes: 1, Wants: 1, Crashes: 1, Prompt: true}},
		{"a shared disk", Bounds{Config: attachments(2), Writes: 1, Wants: 1, PowerOffs: 1, Controllers: 1}},
		{"a disk that several nodes write", Bounds{Config: together(2), Wants: 1, Writes: 1, PowerOffs: 1, Controllers: 1, Prompt: true}},
		{"a replica too many", Bounds{Config: snapshots(3, 3), Factors: 1, Controllers: 2}},
		{"a pause", Bounds{Config: snapshots(2, 2), Writes: 1, Wants: 1, Pauses: 1}},
		{"a cut link", Bounds{Config: snapshots(2, 2), Wants: 1, Cuts: 1, Controllers: 1}},
		{"a lost medium", Bounds{Config: snapshots(2, 2), Wants: 1, Writes: 1, Wrecks: 1}},
		{"a backup", Bounds{Config: snapshots(2, 2), Wants: 1, Restores: 1}},
		{"time", Bounds{Config: snapshots(2, 2), Wants: 1, Writes: 1, Ticks: 1}},
		{"a repeated stream", Bounds{Config: snapshots(2, 2), Wants: 1, Writes: 1, Repeats: 1, Losses: 1}},
	}
}

// TestTheReducedRunReachesTheStatesOfTheFullRun: neither the state that canon
// leaves out nor the steps taken at once hide a state. There is nothing concurrent
// in it for a race detector, with which it would take ten times as long.
func TestTheReducedRunReachesTheStatesOfTheFullRun(t *testing.T) {
	for _, b := range tiny() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			want, full := reach(b.Bounds, Berth(), true)
			got, reduced := reach(b.Bounds, Berth(), false)
			t.Logf("full: %v", full)
			t.Logf("reduced: %v", reduced)
			missing, surplus := 0, 0
			for k := range want {
				if !got[k] {
					missing++
				}
			}
			for k := range got {
				if !want[k] {
					surplus++
				}
			}
			if missing+surplus > 0 {
				t.Errorf("of %d states %d are missed, and %d cannot be", len(want), missing, surplus)
			}
			if full.Violation != "" || reduced.Violation != "" || !full.Complete || !reduced.Complete {
				t.Errorf("full: %q, reduced: %q", full.Violation, reduced.Violation)
			}
		})
	}
}
