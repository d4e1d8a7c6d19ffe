package explore

import "berth.dev/berth/internal/ownership"

// Tally counts what happened in worlds, to show that something did.
type Tally struct {
	Takeovers, Fences, Losses, Branches, Writes, Restored, Wrecked, Rebuilt int
	// Together are worlds in which several nodes have written one disk, and ShutOut those of them in which one was fenced.
	Together, ShutOut int
}

// Add counts one world.
func (t *Tally) Add(w *World) {
	t.Takeovers += len(w.truth.issued) - 1
	t.Fences += len(w.truth.fenced)
	t.Writes += int(w.writes)
	if w.truth.restored {
		t.Restored++
	}
	if v := w.server.current.volume; v != nil {
		t.Losses += len(v.Losses)
		if w.cfg.Many && len(v.AllWriters()) > 1 {
			t.Together++
			t.ShutOut += min(1, len(w.truth.fenced))
		}
		for _, r := range v.Replicas {
			if i := indexOf(r.Node); i >= w.cfg.Factor && r.State == ownership.Ready {
				t.Rebuilt++
			}
		}
	}
	for i := range w.nodes {
		t.Branches += len(w.nodes[i].branches)
		t.Wrecked += int(w.nodes[i].wrecked)
	}
}

// Counts names the figures.
func (t *Tally) Counts() map[string]int {
	return map[string]int{
		"takeover": t.Takeovers, "fence": t.Fences, "recorded loss": t.Losses, "branch put aside": t.Branches,
		"write": t.Writes, "restored backup": t.Restored, "lost medium": t.Wrecked, "replica built elsewhere": t.Rebuilt,
		"disk with several writers": t.Together, "disk with a writer shut out of several": t.ShutOut,
	}
}
