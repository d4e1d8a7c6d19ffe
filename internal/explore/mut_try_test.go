package explore

import (
	"os"
	"strconv"
	"testing"
)

func TestMutTry(t *testing.T) {
	n := 20000
	if s := os.Getenv("TRY"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	only := os.Getenv("MUT")
	buf := make([]Event, 0, Steps)
	for _, m := range Mutants() {
		if only != "" && m.Name != only {
			continue
		}
		r := m.Rules()
		found := false
		for seed := 0; seed < n; seed++ {
			o := Random(uint64(seed), r, buf)
			if o.Violation != "" {
				ev := Shrink(o.Config, r, append([]Event(nil), o.Events...), o.Violation)
				var st Story
				w := Replay(o.Config, r, ev, &st)
				t.Logf("%-26s seed %6d, %3d events: %s", m.Name, seed, len(ev), w.Violation)
				if only != "" {
					t.Log("\n" + st.String())
				}
				found = true
				break
			}
		}
		if !found {
			t.Errorf("%s survives %d schedules", m.Name, n)
		}
	}
}
