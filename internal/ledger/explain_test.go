package ledger_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/ledger"
)

// lines are the answers of the pools to each demand, one line each.
func lines(x ledger.Explanation) []string {
	var lines []string
	for _, d := range x.Demands {
		for _, p := range d.Pools {
			line := p.String()
			if at := strings.Index(line, "(limit"); at >= 0 {
				line = line[:at] + strings.TrimLeft(line[strings.Index(line, ")"):], "):")
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func TestAnExplanationAlsoListsPoolsThatAreMissingOrOfAnotherClass(t *testing.T) {
	// vg2 was not reported, and all of vg3 is of another class.
	c := newCluster(t, report("n1", volumeGroup("vg0", 1024), volumeGroup("vg1", 8*mib), volumeGroup("vg3", 4*mib, "other")))
	c.ObserveVolume(volume("c", "n1", "vg0", 4*mib, ledger.Ready))
	c.ObserveVolume(volume("x", "n1", "vg2", 4*mib, ledger.Ready))
	x := c.Node("n1").Explain(c.request("p", claimed("c", 4*mib), claimed("d", 8*mib)))
	if x.Node != "n1" || !x.Verdict.Fits() {
		t.Errorf("node %q: %v", x.Node, x.Verdict)
	}
	want := []string{
		"pool vg0: needs 8388608, free -4193280  not enough free space",
		"pool vg1: needs 8388608, free 8388608  fits",
		"pool vg2: the node has no pool of the class",
		"pool vg3: the node has no pool of the class",
		"pool vg0: needs 0, free -4193280  fits",
		"pool vg1: the volume belongs in another pool",
		"pool vg2: the volume belongs in another pool",
		"pool vg3: the volume belongs in another pool",
	}
	if diff := cmp.Diff(want, lines(x)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestAnExplanationToAPodThatHoldsRoomShowsItsNewNeed(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 12*mib)))
	c.reserve("p", "n1", claimed("c", 8*mib))
	want := []string{"pool vg0: needs 16777216, free 12582912  not enough free space"}
	if diff := cmp.Diff(want, lines(c.Node("n1").Explain(c.request("p", claimed("c", 16*mib))))); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestAnExplanationWhereNoSourceOrNoNodeIs(t *testing.T) {
	c := newCluster(t)
	r := c.request("p", copyOf(gib, ledger.Place{Node: "n2", Pool: "vg0"}))
	if got := lines(c.Node("n1").Explain(r)); !slices.Equal(got, []string{"pool vg0: " + ledger.SourceElsewhere.Message()}) {
		t.Errorf("the pools say %q", got)
	}
	x := c.Node("n2").Explain(r)
	c.wantReason(x.Verdict, ledger.NotReported)
	if x.Node != "" || len(x.Demands) > 0 {
		t.Errorf("of a node that is not known there is %+v", x)
	}
}
