package explore

import (
	"os"
	"strconv"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	n := 2000
	if s := os.Getenv("TRY"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	start := time.Now()
	buf := make([]Event, 0, Steps)
	seen := map[string]int{}
	for seed := 0; seed < n; seed++ {
		o := Random(uint64(seed), Berth(), buf)
		if o.Violation != "" {
			seen[class(o.Violation)]++
			if seen[class(o.Violation)] == 1 {
				ev := Shrink(o.Config, Berth(), append([]Event(nil), o.Events...), o.Violation)
				st := Story{Detailed: os.Getenv("DETAIL") != ""}
				w := Replay(o.Config, Berth(), ev, &st)
				t.Errorf("seed %d %v: %s\n%s\n%s", seed, o.Config, o.Violation, st.String(), w.Violation)
			}
		}
	}
	t.Log(seen, float64(n)/time.Since(start).Seconds(), "schedules/s")
}
