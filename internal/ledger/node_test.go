package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/ledger"
)

func TestANodeTellsOfThePoolsThatItReported(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg1", gib, ledger.Ready)) // which was not reported
	if p, found := c.Node("n1").Pool("vg0"); !found || p.Total != 10*gib {
		t.Errorf("vg0 is %+v, %t", p, found)
	}
	for name, pool := range map[string]struct{ node, pool string }{
		"a node that is not known":       {"n2", "vg0"},
		"a pool that is not known":       {"n1", "vg2"},
		"a pool that is not in a report": {"n1", "vg1"},
	} {
		if p, found := c.Node(pool.node).Pool(pool.pool); found {
			t.Errorf("%s is %+v", name, p)
		}
	}
}

func TestOfAPoolThatIsReportedNoMoreItsChargesAloneAreKept(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib), volumeGroup("vg1", 10*gib)))
	c.ObserveVolume(volume("c", "n1", "vg0", gib, ledger.Ready))
	c.report(report("n1"))
	pools := c.Pools("n1")
	if len(pools) != 1 || pools[0].Pool.Name != "vg0" || pools[0].Reported || pools[0].Used != gib {
		t.Errorf("the pools are %+v, want vg0 with its charge", pools)
	}
}

func TestANodeOfBeforeAnswersAsBefore(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", gib, ledger.Ready))
	c.ObserveVolume(volume("d", "n1", "vg0", gib, ledger.Ready))
	before, r := c.Node("n1"), c.request("p", claimed("x", 9*gib))
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Ready))
	c.wantReason(before.Fit(r), ledger.NoRoom)
	c.wantReason(before.Without(ledger.Volume("pvc-d")).Fit(r), ledger.Fits)
	before, r = c.Node("n1"), c.request("p", claimed("x", 7*gib))
	c.class(ledger.Class{Name: "fast", Spare: 5 * gib})
	c.wantReason(before.Fit(r), ledger.Fits)
	c.wantReason(c.Node("n1").Fit(r), ledger.NoRoom)
}

func TestAClassThatIsGoneIsOneThatWasKnown(t *testing.T) {
	c := newCluster(t)
	c.ObserveClassGone("never")
	c.wantReason(c.fits("p", "n1", claimed("c", gib)), ledger.Fits)
	c.ObserveClassGone("fast")
	c.wantReason(c.fits("p", "n1", claimed("c", gib)), ledger.UnknownClass)
	c.wantRoom("n1", 0)
}

func TestThereIsNoRoomWhereNothingIsKnown(t *testing.T) {
	c := newCluster(t)
	for _, at := range []struct{ node, class string }{{"n1", "nowhere"}, {"n2", "fast"}} {
		if room := c.Room(at.node, at.class); room != (ledger.Room{}) {
			t.Errorf("class %s has %+v on %s", at.class, room, at.node)
		}
	}
}

func TestChargesAreToldInTheOrderOfTheirOwners(t *testing.T) {
	owners := []ledger.Owner{ledger.Claim("a"), ledger.Claim("b"), ledger.Volume("pvc-c"), ledger.Volume("pvc-d"), ledger.Inline("q", "v")}
	c := newCluster(t, listed(gib, "q"))
	c.ObserveVolume(volume("d", "n1", "vg0", gib, ledger.Ready))
	c.ObserveVolume(volume("c", "n1", "vg0", gib, ledger.Ready))
	c.reserve("p", "n1", claimed("b", gib))
	c.reserve("p", "n1", claimed("a", gib))
	var got []ledger.Owner
	for _, f := range c.Pools("n1")[0].Facts {
		got = append(got, f.Owner)
	}
	if diff := cmp.Diff(owners, got); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}
