package ledger_test

import (
	"fmt"
	"slices"
	"testing"

	"berth.dev/berth/internal/ledger"
)

// pools are count volume groups of one size.
func pools(count int, total int64) []ledger.Pool {
	var pools []ledger.Pool
	for i := range count {
		pools = append(pools, volumeGroup(fmt.Sprintf("vg%02d", i), total))
	}
	return pools
}

// claims are count demands; more is the number of bytes by which each exceeds the
// one before.
func claims(count int, bytes, more int64) []ledger.Demand {
	var demands []ledger.Demand
	for i := range count {
		demands = append(demands, claimed(fmt.Sprintf("c%02d", i), bytes+int64(i)*more))
	}
	return demands
}

func TestAQuestionMayBeOfAnySize(t *testing.T) {
	for name, test := range map[string]struct{ pools, claims int }{
		"many claims and one pool":         {1, 20},
		"many pools and one claim":         {30, 1},
		"both, each of them no great many": {20, 10},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, report("n1", pools(test.pools, 20*gib)...))
			c.wantReason(c.fits("p", "n1", claims(test.claims, gib, 0)...), ledger.Fits)
		})
	}
}

func TestThatNoWayIsLeftIsFoundOutThoughManyWaysAreAlike(t *testing.T) {
	unequal := pools(10, 10*gib)
	for i := range unequal {
		unequal[i].Total += int64(i) * 64 * mib
	}
	disks, even := pools(12, 10*gib), pools(12, 10*gib)
	for i := range disks {
		disks[i].Kind, disks[i].Total = ledger.Device, disks[i].Total+int64(i)*gib
		even[i].Kind, even[i].Total = ledger.Device, int64(4+i)*4*gib
	}
	for name, test := range map[string]struct {
		pools   []ledger.Pool
		demands []ledger.Demand
	}{
		"claims of one size":                 {unequal, claims(11, 6*gib, 0)},
		"claims of more than all pools have": {append(slices.Clone(unequal), volumeGroup("other", 100*gib, "other")), claims(11, 96*gib/10, 4*mib)},
		"pools of one size":                  {pools(10, 10*gib), claims(11, 6*gib, 4*mib)},
		"disks that all would do":            {disks, claims(13, 6*gib, 4*mib)},
		"disks of whole multiples of 4 GiB":  {even, claims(13, 6*gib, 4*mib)},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, report("n1", test.pools...))
			c.wantReason(c.fits("p", "n1", test.demands...), ledger.NotTogether)
		})
	}
}

func TestAVolumeStaysInAPoolThatItsNodeReportsNoMore(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", gib, ledger.Ready))
	c.report(report("n1", volumeGroup("vg1", 10*gib)))
	r := c.request("p", claimed("c", gib))
	c.wantReason(c.Node("n1").Fit(r), ledger.Fits)
	if score := c.Node("n1").Score(r); score != 0 {
		t.Errorf("a pool of which nothing is known scores %d", score)
	}
	more := []ledger.Demand{claimed("c", 20*gib), claimed("d", 6*gib), claimed("e", 6*gib), claimed("f", 6*gib)}
	c.report(report("n1", volumeGroup("vg1", 10*gib), volumeGroup("vg2", 10*gib)))
	c.wantReason(c.fits("p", "n1", more[:3]...), ledger.Fits)
	c.wantReason(c.fits("p", "n1", more...), ledger.NotTogether)
}

// Each volume alone would fit either of two pools. The largest must go to the
// second one, or the others do not fit. The strategy decides which pool is tried
// first.
func TestAPoolIsNotTakenForAnotherThatIsLikeIt(t *testing.T) {
	coarse, ssd, hdd := volumeGroup("vg1", 12*gib), disk("sda", 6*gib, "ssd", "fast", "ssd"), disk("sdb", 8*gib, "hdd", "fast", "ssd")
	coarse.Unit = 4 * gib
	onSSD := claimed("e", 5*gib)
	onSSD.Class = "ssd"
	promised := volume("x", "n1", "vg1", 2*gib, ledger.Pending)
	promised.Class = "careful"
	for name, test := range map[string]struct {
		pools   []ledger.Pool
		there   []ledger.VolumeObject
		demands []ledger.Demand
	}{
		"but has more in it": {
			pools(2, 10*gib), []ledger.VolumeObject{volume("x", "n1", "vg01", 4*gib, ledger.Ready)},
			[]ledger.Demand{claimed("d", 6*gib), claimed("e", 5*gib), claimed("f", 5*gib)},
		},
		"but has promised more spare": {
			[]ledger.Pool{volumeGroup("vg0", 10*gib), volumeGroup("vg1", 10*gib, "fast", "careful")},
			[]ledger.VolumeObject{volume("y", "n1", "vg0", 2*gib, ledger.Ready), promised},
			[]ledger.Demand{claimed("d", 5*gib), claimed("e", 4*gib), claimed("f", 4*gib)},
		},
		"but has larger extents": {
			[]ledger.Pool{volumeGroup("vg0", 12*gib), coarse}, nil,
			[]ledger.Demand{claimed("d", 8*gib), claimed("e", 5*gib), claimed("f", 5*gib)},
		},
		"but is a disk on other media": {
			[]ledger.Pool{ssd, hdd}, nil, []ledger.Demand{claimed("d", 6*gib), onSSD},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, report("n1", test.pools...))
			c.class(ledger.Class{Name: "ssd", Media: "ssd"})
			c.class(ledger.Class{Name: "careful", Spare: 3 * gib})
			for _, v := range test.there {
				c.ObserveVolume(v)
			}
			c.wantReason(c.fits("p", "n1", test.demands...), ledger.Fits)
		})
	}
}

func TestADiskIsNotTakenForAVolumeGroupThatWouldDoAsWell(t *testing.T) {
	c := newCluster(t, report("n1", disk("sda", 10*gib, "", "fast", "mirrored"), volumeGroup("vg0", 22*gib, "fast", "mirrored")))
	c.class(ledger.Class{Name: "mirrored", Layout: ledger.Layout{Mirrors: 2}})
	first, second := claimed("d", 7*gib), claimed("e", 6*gib) // not both in the volume group
	first.Class, second.Class = "mirrored", "mirrored"
	for _, strategy := range ledger.Strategies {
		r, _ := c.Request(ledger.RequestOptions{Pod: "p", Strategy: strategy}, claimed("c", 8*gib), first, second)
		c.wantReason(c.Node("n1").Fit(r), ledger.Fits)
	}
}

func TestANodeOfBeforeDoesNotHaveThePoolOfAVolume(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg1", 10*gib)))
	before := c.Node("n1")
	c.ObserveVolume(volume("c", "n1", "vg0", gib, ledger.Ready))
	verdict := before.Fit(c.request("p", claimed("c", gib)))
	c.wantReason(verdict, ledger.OtherPool)
	if verdict.Owner != ledger.Claim("c") {
		t.Errorf("it is about %v", verdict.Owner)
	}
}

func TestTheRoomOfOneDemandStaysWhileAnotherIsMadeAgain(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 6*gib, ledger.Ready))
	c.reserve("p", "n1", claimed("d", 3*gib))
	c.wantReason(c.fits("p", "n1", claimed("c", 6*gib), claimed("d", 4*gib)), ledger.Fits)
	c.wantReason(c.fits("p", "n1", claimed("c", 6*gib), claimed("d", 5*gib)), ledger.NoRoom)
}

func TestAPodThatDoesNotFitScoresZero(t *testing.T) {
	c := newCluster(t)
	nowhere := ledger.Demand{Owner: ledger.Claim("d"), Class: "nowhere", Bytes: gib}
	for name, demands := range map[string][]ledger.Demand{
		"nothing is asked for":    nil,
		"one that is too large":   {claimed("c", 11*gib)},
		"one without a PoolClass": {claimed("c", gib), nowhere},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.request("p", demands...)
			if score := c.Node("n1").Score(r); score != 0 {
				t.Errorf("score %d", score)
			}
		})
	}
	verdict := c.fits("p", "n1", claimed("c", gib), nowhere)
	c.wantReason(verdict, ledger.UnknownClass)
	if verdict.Owner != nowhere.Owner {
		t.Errorf("it is about %v", verdict.Owner)
	}
}

func TestTheOrderOfDemandsChangesNothing(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib), volumeGroup("vg1", 9*gib)))
	first, second := claimed("c", 6*gib), claimed("d", 3*gib)
	for _, demands := range [][]ledger.Demand{{first, second}, {second, first}} {
		got := c.reserve("p", "n1", demands...)
		if got[first.Owner] != "vg0" || got[second.Owner] != "vg1" {
			t.Errorf("they go to %v", got)
		}
		c.Unreserve("p", "n1")
	}
}

// The first two are of one size, and only the second one must go where there is more room.
func TestAVolumeIsNotTakenForAnotherThatIsLikeIt(t *testing.T) {
	inPool, beside, other := claimed("d", 6*gib), claimed("d", 6*gib), claimed("d", 6*gib)
	other.Class = "other" // which vg0 alone serves
	inPool.Pool, beside.Beside = "vg0", []ledger.Place{{Node: "n1", Pool: "vg0"}}
	for name, test := range map[string]struct {
		vg0, vg1   int64
		there      int64 // of claim d in vg0
		claim, but ledger.Demand
	}{
		"but is there already":        {16 * gib, 6 * gib, 6 * gib, claimed("c", 6*gib), claimed("d", 6*gib)},
		"but must be in one pool":     {16 * gib, 6 * gib, 0, claimed("c", 6*gib), inPool},
		"but is of another class":     {16 * gib, 6 * gib, 0, claimed("c", 6*gib), other},
		"but begins as a copy":        {16 * gib, 6 * gib, 0, claimed("c", 6*gib), beside},
		"but is not quite as large":   {16 * gib, 7 * gib, 0, claimed("c", 7*gib), claimed("d", 6*gib)},
		"and would do anywhere as it": {16 * gib, 6 * gib, 0, claimed("c", 6*gib), claimed("d", 6*gib)},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, report("n1", volumeGroup("vg0", test.vg0, "fast", "other"), volumeGroup("vg1", test.vg1)))
			c.class(ledger.Class{Name: "other"})
			if test.there > 0 {
				c.ObserveVolume(volume("d", "n1", "vg0", test.there, ledger.Ready))
			}
			c.wantReason(c.fits("p", "n1", test.claim, test.but, claimed("e", 5*gib), claimed("f", 5*gib)), ledger.Fits)
		})
	}
}
