package explore

import (
	"berth.dev/berth/internal/ownership"
	"os"
	"strconv"
	"testing"
	"time"
)

func TestExhTry(t *testing.T) {
	max := 2000000
	if s := os.Getenv("TRY"); s != "" {
		max, _ = strconv.Atoi(s)
	}
	for name, b := range map[string]Bounds{
		"handover":  {Config: Config{Kind: ownership.Snapshots, Nodes: 2, Factor: 2, Watchdog: true, Automatic: true}, Writes: 2, Wants: 2, Crashes: 1, Controllers: 1, SettleEvery: 64},
		"failover3": {Config: Config{Kind: ownership.Snapshots, Nodes: 3, Factor: 3, Watchdog: true, Automatic: true}, Writes: 1, Wants: 2, PowerOffs: 1, Controllers: 1, SettleEvery: 64},
		"shared":    {Config: Config{Kind: ownership.Attachments, Nodes: 2, Factor: 2, Watchdog: true, Automatic: true}, Writes: 2, Wants: 2, Crashes: 1, PowerOffs: 1, Pauses: 1, Controllers: 1, SettleEvery: 64},
		"removal":   {Config: Config{Kind: ownership.Snapshots, Nodes: 3, Factor: 3, Automatic: true}, Factors: 2, Crashes: 1, Ticks: 2, Controllers: 2, SettleEvery: 64},
	} {
		start := time.Now()
		b.MaxStates = max
		r := Exhaust(b, Berth())
		t.Logf("%-10s states %d transitions %d settled %d depth %d complete %t %v in %v %s", name, r.States, r.Transitions, r.Settled, r.Depth, r.Complete, len(r.Events), time.Since(start), r.Violation)
		if r.Violation != "" {
			c := b.Config
			c.Eager = true
			ev := Shrink(c, Berth(), r.Events, r.Violation)
			var st Story
			w := Replay(c, Berth(), ev, &st)
			t.Errorf("%s\n%s", st.String(), w.Violation)
		}
	}
}
