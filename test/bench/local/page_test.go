package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/test/figures"
)

// started returns the processes of an operation. In a zpool others follow those of a clone.
func started(c comparison, operation string) processes {
	p := newProcesses(c.pool, operation)
	switch {
	case !onZFS(c.pool):
		p.add(100, map[string]int{"lvcreate": 100}, nil)
	case operation != clone:
		p.add(100, map[string]int{"zfs " + operation: 100}, nil)
	case c.atOnce:
		p.add(100, map[string]int{"zfs clone": 100}, map[string]int{"zfs destroy": 50})
	default:
		p.add(100, map[string]int{"zfs clone": 100}, map[string]int{"zfs destroy": 100})
		p.Following = []float64{0.1, 0.3}
	}
	return p
}

// measured returns the results of a run in which Berth took a quarter more than the bare
// commands.
func measured() *results {
	g := guestResults{
		Machine: machine{Kernel: "6.1", LVM: "2.03", ZFS: "2.1.11", Processor: "TCG", Processors: 2},
		Wiping: []wiping{{How: "Discard", Size: wipedSize, Deleted: []float64{0.3, 0.4, 0.5}, Freed: []float64{0.7, 0.8, 0.9},
			Processes: processes{thick, deletion, 3, map[string]int{"lvchange": 3}, map[string]int{"lvremove": 3}, []float64{0.3, 0.4, 0.5}}}},
		Idle:  idle{200, 64 << 20, 32 << 20, 50 * time.Millisecond, 30 * time.Second},
		Stats: []asked{{"embedded", 1, []float64{400, 500, 450}, 0}},
	}
	for _, c := range slices.Concat(onLVM, inZpools) {
		for _, operation := range c.operations {
			about := subject{c.pool, operation, 1}
			if c.atOnce {
				about.AtOnce = 8
			}
			for _, side := range c.sides {
				took := []float64{0.4, 0.8}
				if side == socketSide || side == localSide {
					took = []float64{0.5, 1}
				}
				g.Samples = append(g.Samples, sample{about, side, took})
			}
			g.Processes = append(g.Processes, started(c, operation))
		}
	}
	g.Processes = merge(g.Processes)
	return &results{
		options: options{volumes: 100, rounds: 2, atOnce: 8, idleFor: time.Minute, statsFor: time.Second}, guest: g, server: "v1", load: [2]string{"0.1", "0.2"},
		agent: idle{200, 80 << 20, 40 << 20, 20 * time.Millisecond, time.Minute}, machine: machine{Kernel: "6.9", Processor: "EPYC", Processors: 2},
	}
}

func TestThePageShowsRatiosProcessesAndIdleCosts(t *testing.T) {
	var page bytes.Buffer
	measured().page(&page)
	for what, pattern := range map[string]string{
		"a ratio with its verdict":                      `thick, create, one after the other +\| +600 \| +750 \| +1\.25 \| +- \| +1 round \|`,
		"a ratio within the process":                    `thick, delete, one after the other, in process +\| +600 \| +750 \|`,
		"operations at once":                            `thin, snapshot, 8 at once +\|`,
		"an operation on zvols":                         `zvol, delete what was copied, one after the other +\| +600 \| +750 \|`,
		"the number of volumes":                         `makes 100 volumes .* to 12 of them[^%]* 8 in\n *each round, to 16 volumes`,
		"processes of an operation":                     `thick, create +\| +1 lvcreate \| +0 \| +0 \|`,
		"processes that follow, and how long they take": `zvol, clone +\| +1 zfs clone \| +0\.75 zfs destroy \| +200 \|`,
		"processes of a volume that is wiped":           `thick, delete and wipe by Discard +\| +1 lvchange \| +1 lvremove \| +400 \|`,
		"the head of the table of processes":            `operation +\| +its caller waits for \| +what follows \| +that takes, ms \|`,
		"the time of wiping":                            `64 MiB, wiped by Discard +\| +400 \| +800 \|`,
		"an idle agent":                                 `agent.* +\| +200 \| +80\.0 \| +40\.0 \| +20\.0 \|`,
		"a poold that was seen for half a minute":       `poold.* +\| +200 \| +64\.0 \| +32\.0 \| +100 \|`,
		"statistics":                                    `embedded +\| +1 \| +450 \| +400 \| +500 \| +0 \|`,
		"the machines":                                  `\(EPYC\), Linux 6\.9\..*\n.*Linux 6\.1, LVM 2\.03, ZFS 2\.1\.11`,
	} {
		if !regexp.MustCompile(pattern).MatchString(page.String()) {
			t.Errorf("%s is missing: no match for %s in\n%s", what, pattern, page.String())
		}
	}
	if strings.Contains(page.String(), "%!") || strings.Contains(page.String(), "NaN") {
		t.Errorf("something was not filled in:\n%s", page.String())
	}
}

func TestAShortRunSaysSo(t *testing.T) {
	r := measured()
	for volumes, want := range map[int]bool{10: true, 100: false} {
		r.volumes = volumes
		var page bytes.Buffer
		r.page(&page)
		if got := strings.Contains(page.String(), "This run is a short one"); got != want {
			t.Errorf("with %d volumes it is called short: %v", volumes, got)
		}
	}
}

func TestThePrintedResultsOfAGuestAreReadBack(t *testing.T) {
	g := measured().guest
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	var back guestResults
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(g, back, cmp.AllowUnexported(sample{})); diff != "" {
		t.Error(diff)
	}
}

func TestAVerdictGoesByTheRatio(t *testing.T) {
	for want, r := range map[string]figures.Interval{
		"met":     {Value: 1.3, Low: 1.1, High: 1.5},
		"not met": {Value: 1.31, Low: 1.2, High: 1.4},
		"1 round": {Value: 1, Low: 1, High: 1},
	} {
		if got := verdict(r); got != want {
			t.Errorf("%v is %s", r, got)
		}
	}
}

func TestEachOperationIsABarForEachOfTwoSides(t *testing.T) {
	g := measured().guest
	names := map[string]int{}
	for _, b := range g.bars() {
		names[b.Name]++
	}
	for _, about := range g.subjects() {
		if got := names[about.Pool+", "+about.Operation]; got != 2 {
			t.Errorf("%s has %d bars", about.title(), got)
		}
	}
}

func TestSharesAreAllOfIt(t *testing.T) {
	for _, n := range []int{7, 10, 100} {
		next := 0
		for round := range 7 {
			from, to := share(n, 7, round)
			if from != next || to <= from {
				t.Errorf("round %d of %d has %d to %d", round, n, from, to)
			}
			next = to
		}
		if next != n {
			t.Errorf("%d of %d", next, n)
		}
	}
}
