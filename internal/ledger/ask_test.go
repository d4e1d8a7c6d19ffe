package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/ledger"
)

func TestTheVerdictSaysWhyADemandDoesNotFit(t *testing.T) {
	unhealthy, thin := volumeGroup("vg0", 10*gib), volumeGroup("vg0", 10*gib)
	unhealthy.Health = ledger.Degraded
	thin.Kind, thin.Filled = ledger.Thin, 10*gib
	notReady := report("n1", volumeGroup("vg0", 10*gib))
	notReady.Ready = false
	demanding, newer := claimed("c", gib), report("n1", volumeGroup("vg0", 10*gib))
	demanding.Feature, newer.Features = "flight", []string{"copies", "flight"}
	for name, test := range map[string]struct {
		report ledger.Report
		demand ledger.Demand
		want   ledger.Reason
	}{
		"it fits":                         {report("n1", volumeGroup("vg0", 10*gib)), claimed("c", 10*gib), ledger.Fits},
		"one byte too many":               {report("n1", volumeGroup("vg0", 10*gib)), claimed("c", 10*gib+1), ledger.NoRoom},
		"no size":                         {report("n1", volumeGroup("vg0", 10*gib)), claimed("c", 0), ledger.Invalid},
		"a negative size":                 {report("n1", volumeGroup("vg0", 10*gib)), claimed("c", -5), ledger.Invalid},
		"an unknown class":                {report("n1", volumeGroup("vg0", 10*gib)), ledger.Demand{Owner: ledger.Claim("c"), Class: "x", Bytes: 1}, ledger.UnknownClass},
		"a class the node does not serve": {report("n1", volumeGroup("vg0", 10*gib, "other")), claimed("c", gib), ledger.NotServed},
		"a node that never reported":      {report("n2"), claimed("c", gib), ledger.NotReported},
		"a node that is not ready":        {notReady, claimed("c", gib), ledger.NodeNotReady},
		"an unhealthy pool":               {report("n1", unhealthy), claimed("c", gib), ledger.PoolUnhealthy},
		"a thin pool that is full":        {report("n1", thin), claimed("c", gib), ledger.PoolFull},
		"an agent without the feature":    {report("n1", volumeGroup("vg0", 10*gib)), demanding, ledger.AgentTooOld},
		"an agent with the feature":       {newer, demanding, ledger.Fits},
		"such an agent, no pool of it":    {report("n1", volumeGroup("vg0", 10*gib, "other")), demanding, ledger.NotServed},
		"another pool is demanded":        {report("n1", volumeGroup("vg0", 10*gib)), ledger.Demand{Owner: ledger.Claim("c"), Class: "fast", Bytes: 1, Pool: "vg9"}, ledger.OtherPool},
		"the source is on another node":   {report("n1", volumeGroup("vg0", 10*gib)), copyOf(1, ledger.Place{Node: "n2", Pool: "vg0"}), ledger.SourceElsewhere},
		"the source is nowhere":           {report("n1", volumeGroup("vg0", 10*gib)), copyOf(1), ledger.SourceElsewhere},
		"the source is in another pool":   {report("n1", volumeGroup("vg0", 10*gib)), copyOf(1, ledger.Place{Node: "n1", Pool: "vg9"}), ledger.OtherPool},
		"the source's pool is too small":  {report("n1", volumeGroup("vg0", gib), volumeGroup("vg1", 10*gib)), copyOf(2*gib, ledger.Place{Node: "n1", Pool: "vg0"}), ledger.NoRoom},
		"no pools, and no source":         {report("n1"), copyOf(1, ledger.Place{Node: "n2", Pool: "vg0"}), ledger.SourceElsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, test.report)
			c.wantReason(c.fits("p", "n1", test.demand), test.want)
		})
	}
}

func TestOfSeveralRefusalsTheClosestOneIsTold(t *testing.T) {
	sick := volumeGroup("a", 10*gib)
	sick.Health = ledger.Degraded
	c := newCluster(t, report("n1", volumeGroup("z", gib), sick, volumeGroup("m", 10*gib, "other")))
	c.wantReason(c.fits("p", "n1", claimed("c", 2*gib)), ledger.NoRoom)
}

// copyOf demands room for claim c, a copy of a source in these places.
func copyOf(bytes int64, places ...ledger.Place) ledger.Demand {
	return ledger.Demand{Owner: ledger.Claim("c"), Class: "fast", Bytes: bytes, Beside: append([]ledger.Place{}, places...)}
}

func TestACopyGoesBesideItsSource(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 20*gib), volumeGroup("vg1", 10*gib)))
	demand := copyOf(gib, ledger.Place{Node: "n2", Pool: "vg0"}, ledger.Place{Node: "n1", Pool: "vg1"})
	if got := c.reserve("p", "n1", demand)[demand.Owner]; got != "vg1" {
		t.Errorf("the copy goes to %s, want vg1", got)
	}
}

func TestOfCopiesInOnePodEachGoesBesideItsOwnSource(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 20*gib), volumeGroup("vg1", 20*gib)))
	first := copyOf(gib, ledger.Place{Node: "n1", Pool: "vg1"})
	second := copyOf(gib, ledger.Place{Node: "n1", Pool: "vg0"})
	second.Owner = ledger.Claim("d")
	got := c.reserve("p", "n1", first, second)
	if got[first.Owner] != "vg1" || got[second.Owner] != "vg0" {
		t.Errorf("they go to %v", got)
	}
}

func TestACopyThatHasItsVolumeNeedsNoSourceAnyMore(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", gib)))
	c.ObserveVolume(volume("c", "n1", "vg0", gib, ledger.Ready))
	c.wantReason(c.fits("p", "n1", copyOf(gib)), ledger.Fits)
}

func TestTheSmallestDiskThatFitsIsTaken(t *testing.T) {
	c := newCluster(t, report("n1", disk("a", 8*gib, "hdd", "fast"), disk("b", 4*gib, "ssd", "fast"), disk("c", 6*gib, "hdd", "fast")))
	c.class(ledger.Class{Name: "fast", Media: "hdd"})
	for _, strategy := range ledger.Strategies {
		r, _ := c.Request(ledger.RequestOptions{Pod: "p", Strategy: strategy}, claimed("x", 3*gib))
		if choices, _ := c.Node("n1").Place(r, nil); len(choices) != 1 || choices[0].Pool != "c" {
			t.Errorf("%s takes %v, want c", strategy.Name(), choices)
		}
	}
}

func TestRoomIsTheCapacityThatAClassCanStillUse(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib), volumeGroup("vg1", 4*gib), volumeGroup("vg2", 50*gib, "other")))
	c.class(ledger.Class{Name: "fast", Spare: gib})
	c.ObserveVolume(volume("c", "n1", "vg0", 8*gib, ledger.Ready))
	if diff := cmp.Diff(ledger.Room{Largest: 3 * gib, Sum: 4 * gib}, c.Room("n1", "fast")); diff != "" {
		t.Errorf("room differs (-want +got):\n%s", diff)
	}
}

func TestAnExplanationHasTheNumbers(t *testing.T) {
	vg := volumeGroup("vg0", 10*gib)
	vg.Foreign = gib
	c := newCluster(t, report("n1", vg, volumeGroup("vg1", 10*gib, "other")))
	c.class(ledger.Class{Name: "fast", Spare: gib})
	c.ObserveVolume(volume("c", "n1", "vg0", 6*gib, ledger.Ready))
	x := c.Node("n1").Explain(c.request("p", claimed("d", 3*gib)))
	want := ledger.PoolExplanation{
		Pool: "vg0", Kind: "thick", Total: 10 * gib, Foreign: gib, Used: 7 * gib,
		Limit: 9 * gib, Promised: x.Demands[0].Pools[0].Promised, Free: 2 * gib, Need: 3 * gib, Reason: ledger.NoRoom,
	}
	if diff := cmp.Diff(want, x.Demands[0].Pools[0]); diff != "" {
		t.Errorf("the explanation differs (-want +got):\n%s", diff)
	}
	c.wantReason(x.Verdict, ledger.NoRoom)
	line := x.Demands[0].Pools[0].String()
	if !strings.Contains(line, fmt.Sprintf("free %d", 2*gib)) || !strings.Contains(line, "not enough free space") {
		t.Errorf("the line is %q", line)
	}
	if got := x.Demands[0].Pools[1].Reason; got != ledger.NotServed {
		t.Errorf("the other pool says %v, want NotServed", got)
	}
}

func TestEveryReasonHasANameAndAMessageOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for r := ledger.Fits; r <= ledger.TooManyWays; r++ {
		for _, s := range []string{r.String(), r.Message()} {
			if s == "" || seen[s] || strings.HasPrefix(strings.ToLower(s), "unknown reason") {
				t.Errorf("reason %d has the text %q", r, s)
			}
			seen[s] = true
		}
	}
	if r := ledger.TooManyWays + 1; r.String() != "Unknown" || r.Message() != "unknown reason" {
		t.Errorf("what is no reason is called %q: %s", r, r.Message())
	}
}

func TestASearchThatWouldTakeForeverIsGivenUpAndALargeOneIsNot(t *testing.T) {
	var pools []ledger.Pool
	var demands []ledger.Demand
	for i := range 40 {
		pools = append(pools, volumeGroup(fmt.Sprintf("vg%02d", i), int64(10_000-i)*4*mib))
		demands = append(demands, claimed(fmt.Sprintf("c%02d", i), int64(5_001+i)*4*mib))
	}
	c := newCluster(t, report("n1", pools...))
	c.wantReason(c.fits("p", "n1", demands...), ledger.Fits) // one to each
	demands = append(demands, claimed("one", 5_100*4*mib))
	c.wantReason(c.fits("p", "n1", demands...), ledger.TooManyWays) // no pool has room for two
}

func TestASnapshotAndAHypotheticalQuestionChangeNothing(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 8*gib, ledger.Ready))
	before := c.Snapshot()
	r := c.request("p", claimed("d", 4*gib))
	c.wantReason(before.Without(ledger.Volume("pvc-c")).Node("n1").Fit(r), ledger.Fits)
	c.wantReason(before.Node("n1").Fit(r), ledger.NoRoom)
	c.ObserveVolumeGone("pvc-c", 0)
	c.wantReason(before.Node("n1").Fit(r), ledger.NoRoom) // a snapshot is of its moment
	c.wantReason(c.Node("n1").Fit(r), ledger.Fits)
	if diff := cmp.Diff([]string{"n1"}, before.NodeNames()); diff != "" {
		t.Errorf("nodes differ:\n%s", diff)
	}
}

func TestOwnersReadWellInMessages(t *testing.T) {
	for want, o := range map[string]ledger.Owner{
		"claim 17":                   ledger.Claim("17"),
		"volume pvc-17":              ledger.Volume("pvc-17"),
		"inline volume tmp of pod 4": ledger.Inline("4", "tmp"),
		"snapshot snap-5":            ledger.VolumeSnapshot("snap-5"),
	} {
		if got := o.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAVolumeThatIsThereNeedsNoRoomASecondTime(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 10*gib, ledger.Ready))
	c.wantReason(c.fits("p", "n1", ledger.Demand{Owner: ledger.Volume("pvc-c"), Class: "fast", Bytes: 10 * gib}), ledger.Fits)
}
