package ledger_test

import (
	"fmt"
	"testing"

	"berth.dev/berth/internal/ledger"
)

func TestAStandbyYieldsItsSlotToAPrimary(t *testing.T) {
	slots := ledger.Pool{Name: "slots", Kind: ledger.Slots, Total: 2, Unit: 1, Classes: []string{"fast"}}
	c := newCluster(t, report("n1", slots), report("n2", slots))
	standby := volume("s", "n1", "slots", gib, ledger.Ready)
	standby.Replicas[0].Yields = true
	c.ObserveVolume(standby)
	c.ObserveVolume(volume("c", "n1", "slots", gib, ledger.Ready))
	c.wantUsed("n1", "slots", 2)
	c.wantReason(c.fits("p", "n1", claimed("x", gib)), ledger.Fits)
	ask := func(yields bool) ledger.Verdict {
		d := claimed("x", gib)
		d.Factor, d.Yields = 2, yields
		return c.Snapshot().Plan(c.request("p", d)).Fit(c.Node("n2"))
	}
	c.wantReason(ask(true), ledger.NoStandby)
	c.wantReason(ask(false), ledger.Fits)
}

func slotNode(name string, pools ...int64) ledger.Report {
	r := report(name)
	for i, total := range pools {
		r.Pools = append(r.Pools, ledger.Pool{Name: fmt.Sprintf("slots%d", i), Kind: ledger.Slots, Total: total, Unit: 1, Classes: []string{"fast"}})
	}
	return r
}

func attached(claim string, pool string, nodes ...string) ledger.VolumeObject {
	v := volume(claim, nodes[0], pool, gib, ledger.Ready)
	for _, n := range nodes[1:] {
		v.Replicas = append(v.Replicas, ledger.Replica{Node: n, Pool: pool, State: ledger.Ready, Actual: gib, Yields: true})
	}
	return v
}

func TestAStandbyTakesASlotThatIsSpareAndAPrimaryTakesItBack(t *testing.T) {
	c := newCluster(t, slotNode("n1", 2), slotNode("n2", 1))
	standby := replicated("a", 2, gib)
	standby.Yields = true
	_, verdict := c.Reserve("n1", c.request("p", standby))
	c.wantReason(verdict, ledger.Fits)
	c.wantReason(c.plan("q", standby).Fit(c.Node("n1")), ledger.Fits)
	other := replicated("b", 2, gib)
	other.Yields = true
	c.wantReason(c.plan("q", other).Fit(c.Node("n1")), ledger.NoStandby)
	_, verdict = c.Reserve("n2", c.request("q", claimed("b", gib)))
	c.wantReason(verdict, ledger.Fits)
	c.wantReason(c.fits("r", "n2", claimed("c", gib)), ledger.NoRoom)
}

func TestAStandbysSlotIsAPrimarysOnceItsClaimNamesTheNode(t *testing.T) {
	c := newCluster(t, slotNode("n1", 1), slotNode("n2", 1))
	standby := replicated("a", 2, gib)
	standby.Yields = true
	if _, verdict := c.Reserve("n1", c.request("p", standby)); !verdict.Fits() {
		t.Fatal(verdict)
	}
	c.wantReason(c.fits("q", "n2", claimed("b", gib)), ledger.Fits)
	c.ObserveClaim(ledger.ClaimObject{UID: "a", Class: "fast", Requested: gib, SelectedNode: "n2"})
	c.wantReason(c.fits("q", "n2", claimed("b", gib)), ledger.NoRoom)
}

func TestAPrimaryThatFindsItsOwnStandbyNeedsASlotForSure(t *testing.T) {
	c := newCluster(t, slotNode("n1", 1), slotNode("n2", 1))
	c.ObserveVolume(attached("a", "slots0", "n1", "n2"))
	c.wantReason(c.fits("p", "n2", claimed("a", gib)), ledger.Fits)
	c.ObserveVolume(volume("b", "n2", "slots0", gib, ledger.Ready)) // which takes the slot
	c.wantReason(c.fits("p", "n2", claimed("a", gib)), ledger.NoRoom)
	if got := c.Node("n2").Explain(c.request("p", claimed("a", gib))).Message(inGib); got != "pool slots0 has 0Gi free, 1Gi asked" {
		t.Errorf("the message is %q", got)
	}
}

func TestStandbysThatYieldCountEachOtherOnce(t *testing.T) {
	c := newCluster(t, slotNode("n1", 9), slotNode("n2", 3))
	c.ObserveVolume(attached("x", "slots0", "n1", "n2"))
	var demands []ledger.Demand
	for _, uid := range []string{"a", "b", "c"} {
		d := replicated(uid, 2, gib)
		d.Yields = true
		demands = append(demands, d)
	}
	c.wantReason(c.plan("p", demands[:2]...).Fit(c.Node("n1")), ledger.Fits)
	c.wantReason(c.plan("p", demands...).Fit(c.Node("n1")), ledger.NoStandby)
}

func TestAPoolWithStandbysIsNotLikeOneWithout(t *testing.T) {
	for slots := range int64(2) {
		c := newCluster(t, slotNode("n1", 9), slotNode("n2", slots+1, slots+1))
		c.ObserveVolume(attached("x", "slots1", "n1", "n2"))
		var demands []ledger.Demand // those that do not yield must all go to slots1, where one yields
		for i := range 2 * (slots + 1) {
			d := replicated(fmt.Sprint(i), 2, gib)
			d.Yields = i > slots
			demands = append(demands, d)
		}
		c.wantReason(c.plan("p", demands...).Fit(c.Node("n1")), ledger.Fits)
	}
}
