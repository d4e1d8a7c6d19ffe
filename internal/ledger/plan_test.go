package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/internal/ledger"
)

// replicated is a claim for several replicas.
func replicated(uid string, factor int, bytes int64) ledger.Demand {
	d := claimed(uid, bytes)
	d.Factor = factor
	return d
}

// trio is a cluster of three nodes, and a fourth that serves another class.
func trio(t *testing.T, totals ...int64) *cluster {
	t.Helper()
	reports := []ledger.Report{report("other", volumeGroup("vg0", 10*gib, "slow"))}
	for i, total := range totals {
		reports = append(reports, report(fmt.Sprintf("n%d", i+1), volumeGroup("vg0", total)))
	}
	return newCluster(t, reports...)
}

// slotNode reports slots alone.
// attached is a Volume of a shared disk, with standbys that yield on all nodes but the first.
// on are the nodes at which an owner is charged, with the charge in MiB.
func (c *cluster) on(o ledger.Owner) []string {
	var at []string
	for _, node := range c.NodeNames() {
		for _, p := range c.Pools(node) {
			for _, f := range p.Facts {
				if f.Owner == o {
					at = append(at, node)
				}
			}
		}
	}
	return at
}

func (c *cluster) wantOn(o ledger.Owner, nodes ...string) {
	c.t.Helper()
	if got := c.on(o); !slices.Equal(got, nodes) {
		c.t.Errorf("%v is charged on %v, want %v", o, got, nodes)
	}
}

func (c *cluster) plan(pod string, demands ...ledger.Demand) *ledger.Plan {
	return c.Snapshot().Plan(c.request(pod, demands...))
}

func TestTheVolumesOfAPodShareTheNodesOfTheirReplicas(t *testing.T) {
	c := trio(t, 10*gib, 4*gib, 10*gib, 3*gib)
	choices, verdict := c.Reserve("n1", c.request("p", replicated("a", 2, 2*gib), replicated("b", 3, 2*gib), claimed("c", gib)))
	c.wantReason(verdict, ledger.Fits)
	c.wantOn(ledger.Claim("a"), "n1", "n3")
	c.wantOn(ledger.Claim("c"), "n1")
	if got := c.on(ledger.Claim("b")); len(got) != 3 || !slices.Contains(got, "n1") || !slices.Contains(got, "n3") {
		t.Errorf("b is on %v", got)
	}
	if len(choices) != 6 || choices[2].Node != "n1" || choices[3].Node == "n1" {
		t.Errorf("the choices are %v: those on the pod's node come first", choices)
	}
	c.Unreserve("p", "n1")
	for _, uid := range []string{"a", "b", "c"} {
		c.wantOn(ledger.Claim(uid))
	}
}

func TestWhereOneReplicaHasNoPlaceNothingIsHeld(t *testing.T) {
	c := trio(t, 10*gib, gib, 4*gib)
	_, verdict := c.Reserve("n1", c.request("p", replicated("a", 3, 2*gib), replicated("b", 2, gib)))
	c.wantReason(verdict, ledger.NoStandby)
	c.wantOn(ledger.Claim("a"))
	c.wantOn(ledger.Claim("b"))
}

func TestTheVolumeTakesThePlaceOfItsHoldsNodeByNode(t *testing.T) {
	c := trio(t, 10*gib, 10*gib)
	if _, verdict := c.Reserve("n1", c.request("p", replicated("a", 2, 2*gib))); !verdict.Fits() {
		t.Fatal(verdict)
	}
	v := volume("a", "n1", "vg0", 2*gib, ledger.Pending)
	c.ObserveVolume(v)
	c.wantOn(ledger.Claim("a"), "n2")
	v.Replicas = append(v.Replicas, ledger.Replica{Node: "n2", Pool: "vg0"})
	c.ObserveVolume(v)
	c.wantOn(ledger.Claim("a"))
	c.wantOn(ledger.Volume("pvc-a"), "n1", "n2")
	c.Unreserve("p", "n1")
	c.wantUsed("n2", "vg0", 2*gib)
}

func TestAClaimThatNamesItsNodeKeepsTheRoomOfItsStandbys(t *testing.T) {
	c := trio(t, 10*gib, 10*gib)
	if _, verdict := c.Reserve("n1", c.request("p", replicated("a", 2, 2*gib))); !verdict.Fits() {
		t.Fatal(verdict)
	}
	selected := ledger.ClaimObject{UID: "a", Class: "fast", Requested: 2 * gib, SelectedNode: "n1"}
	c.ObserveClaim(selected)
	c.Unreserve("p", "n1")
	c.wantOn(ledger.Claim("a"), "n1", "n2")
	selected.SelectedNode = ""
	c.ObserveClaim(selected)
	c.wantOn(ledger.Claim("a"))
}

func TestRoomThatWasAStandbysForAnotherNodeIsNotKeptForThatNodeLater(t *testing.T) {
	c := trio(t, 10*gib, 10*gib)
	reserve := func(pod, node string) {
		if _, verdict := c.Reserve(node, c.request(pod, replicated("a", 2, 2*gib))); !verdict.Fits() {
			t.Fatal(verdict)
		}
	}
	reserve("p", "n1") // so n2 is a standby of n1
	reserve("q", "n2")
	c.Unreserve("p", "n1")
	c.ObserveClaim(ledger.ClaimObject{UID: "a", Class: "fast", Requested: 2 * gib, SelectedNode: "n1"})
	c.Unreserve("q", "n2")
	c.wantOn(ledger.Claim("a"), "n1")
}

func TestReservingAgainKeepsTheStandbysWhereTheyAre(t *testing.T) {
	c := trio(t, 10*gib, 10*gib, 20*gib)
	for range 2 {
		if _, verdict := c.Reserve("n1", c.request("p", replicated("a", 2, 2*gib))); !verdict.Fits() {
			t.Fatal(verdict)
		}
		c.wantOn(ledger.Claim("a"), "n1", "n3")
		c.report(report("n2", volumeGroup("vg0", 90*gib))) // which is the better node from now on
	}
	c.report(report("n3", volumeGroup("vg0", gib)))
	if _, verdict := c.Reserve("n1", c.request("p", replicated("a", 2, 2*gib))); !verdict.Fits() {
		t.Fatal(verdict)
	}
	c.wantOn(ledger.Claim("a"), "n1", "n2")
	c.wantUsed("n3", "vg0", 0)
}

func TestTwoPodsWithOneClaimHoldTheSameRoom(t *testing.T) {
	c := trio(t, 10*gib, 10*gib, 10*gib)
	for _, pod := range []string{"p", "q"} {
		if _, verdict := c.Reserve("n1", c.request(pod, replicated("a", 2, 2*gib))); !verdict.Fits() {
			t.Fatal(verdict)
		}
	}
	held := c.on(ledger.Claim("a"))
	if len(held) != 2 {
		t.Fatalf("they hold room on %v", held)
	}
	c.Unreserve("p", "n1")
	c.wantOn(ledger.Claim("a"), held...)
	c.Unreserve("q", "n1")
	c.wantOn(ledger.Claim("a"))
}

func TestClaimsOfAPodThatComeOneByOneReachTheSameNodes(t *testing.T) {
	c := trio(t, 10*gib, 4*gib, 10*gib)
	c.ObserveVolume(ledger.VolumeObject{Name: "pvc-a", Claim: "a", Class: "fast", Capacity: gib, Replicas: []ledger.Replica{
		{Node: "n1", Pool: "vg0", State: ledger.Ready, Actual: gib}, {Node: "n2", Pool: "vg0"},
	}})
	for name, sibling := range map[string]ledger.Owner{"by its claim": ledger.Claim("a"), "by its Volume": ledger.Volume("pvc-a")} {
		t.Run(name, func(*testing.T) {
			ask := func(factor int, bytes int64) *ledger.Request {
				r, _ := c.Request(ledger.RequestOptions{Pod: "p", Siblings: []ledger.Owner{sibling}}, replicated("b", factor, bytes))
				return r
			}
			_, verdict := c.Reserve("n1", ask(2, gib))
			c.wantReason(verdict, ledger.Fits)
			c.wantOn(ledger.Claim("b"), "n1", "n2")
			c.Unreserve("p", "n1")
			_, verdict = c.Reserve("n1", ask(3, gib))
			c.wantReason(verdict, ledger.Fits)
			c.wantOn(ledger.Claim("b"), "n1", "n2", "n3")
			c.Unreserve("p", "n1")
			_, verdict = c.Reserve("n1", ask(2, 4*gib)) // which has room on n3, where the pod's other volume is not
			c.wantReason(verdict, ledger.NoStandby)
			_, verdict = c.Reserve("n3", ask(2, gib))
			c.wantReason(verdict, ledger.SiblingsElsewhere)
		})
	}
}

func TestStandbysAreSpreadOverFailureDomains(t *testing.T) {
	zone := func(name, domain string, total int64) ledger.Report {
		r := report(name, volumeGroup("vg0", total))
		r.Domain = domain
		return r
	}
	c := newCluster(t, zone("a1", "a", 10*gib), zone("a2", "a", 90*gib), zone("b1", "b", 4*gib), zone("b2", "b", 80*gib))
	for name, test := range map[string]struct {
		factor int
		bytes  int64
		want   []string
	}{
		"the second is in another zone, on the node with more room":    {2, gib, []string{"a1", "b2"}},
		"the third has to share one":                                   {3, gib, []string{"a1", "a2", "b2"}},
		"a zone without room is no reason to refuse":                   {4, gib, []string{"a1", "a2", "b1", "b2"}},
		"the strategy decides between nodes of which none is the best": {3, 5 * gib, []string{"a1", "a2", "b2"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, verdict := c.Reserve("a1", c.request("p", replicated("x", test.factor, test.bytes))); !verdict.Fits() {
				t.Fatal(verdict)
			}
			c.wantOn(ledger.Claim("x"), test.want...)
			c.Unreserve("p", "a1")
		})
	}
}

func TestTheScoreIsMostlyThatOfThePodsOwnNode(t *testing.T) {
	c := newCluster(t, report("large", volumeGroup("vg0", 1<<45)), report("small", volumeGroup("vg0", 1<<35)), report("middle", volumeGroup("vg0", 1<<40)))
	score := func(node string, factor int) int64 {
		return c.plan("p", replicated("x", factor, gib)).Score(c.Node(node))
	}
	if alone := c.Node("large").Score(c.request("p", claimed("x", gib))); score("large", 1) != alone {
		t.Errorf("without standbys the score is %d, want %d", score("large", 1), alone)
	}
	if large, middle, small := score("large", 2), score("middle", 2), score("small", 2); large <= middle || middle <= small || small == 0 {
		t.Errorf("the scores are %d, %d and %d", large, middle, small)
	}
	if got := score("large", 4); got != 0 {
		t.Errorf("where the standbys have no place the score is %d", got)
	}
	whole := score("large", 2)
	for _, name := range []string{"large", "middle", "small"} {
		r := report(name, c.poolsOf(name)...)
		r.Domain = "one"
		c.report(r)
	}
	if got := score("large", 2); got >= whole {
		t.Errorf("with all nodes in one failure domain the score is %d, want less than %d", got, whole)
	}
}

func (c *cluster) poolsOf(node string) []ledger.Pool {
	var pools []ledger.Pool
	for _, p := range c.Pools(node) {
		pools = append(pools, p.Pool)
	}
	return pools
}

func inGib(n int64) string { return fmt.Sprintf("%dGi", n/gib) }

func TestAReplicaWithoutAPlaceIsExplainedWithTheFiguresOfEachNode(t *testing.T) {
	c := trio(t, 10*gib, gib, 4*gib)
	few := "2 further nodes needed for the other replicas, found: n3; node n2: pool vg0 has 1Gi free, 2Gi asked; node other: the node has no pool of the class"
	if got := c.plan("p", replicated("a", 3, 2*gib)).Explain(c.Node("n1")).Message(inGib); got != few {
		t.Errorf("the message is\n%s\nwant\n%s", got, few)
	}
	for i := range 7 {
		c.report(report(fmt.Sprintf("x%d", i), volumeGroup("vg0", 10*gib, "slow")))
	}
	x := c.plan("p", replicated("a", 3, 2*gib)).Explain(c.Node("n1"))
	want := "2 further nodes needed for the other replicas, found: n3; node n2: pool vg0 has 1Gi free, 2Gi asked; " +
		"node other: the node has no pool of the class; node x0: the node has no pool of the class; 6 more: the node has no pool of the class"
	if got := x.Message(inGib); got != want {
		t.Errorf("the message is\n%s\nwant\n%s", got, want)
	}
	x = c.plan("p", replicated("a", 2, 2*gib)).Explain(c.Node("n1"))
	if x.Message(inGib) != "" || len(x.Choices) != 2 {
		t.Errorf("what fits is explained by %+v", x)
	}
}

func TestTheNodesOfThePodsOtherVolumesAreNamed(t *testing.T) {
	c := trio(t, 10*gib, 10*gib, 10*gib)
	v := volume("a", "n1", "vg0", gib, ledger.Ready)
	v.Replicas = append(v.Replicas, ledger.Replica{Node: "lost", Pool: "vg0", State: ledger.Ready, Actual: gib})
	c.ObserveVolume(v)
	r, _ := c.Request(ledger.RequestOptions{Pod: "p", Siblings: []ledger.Owner{ledger.Volume("pvc-a")}}, replicated("b", 2, gib))
	plan := c.Snapshot().Plan(r)
	for node, want := range map[string]string{
		"n1": "1 further node needed for the other replicas, found: none; node lost: the node has not reported its pools; node n2: the pod's other volumes",
		"n3": "the pod's other volumes have their replicas on other nodes: lost, n1",
	} {
		if got := plan.Explain(c.Node(node)).Message(inGib); !strings.HasPrefix(got, want) {
			t.Errorf("on %s the message is\n%s\nwant\n%s", node, got, want)
		}
	}
}

func TestAPodThatCannotRunOnANodeHasNoNewStandbyThere(t *testing.T) {
	c := trio(t, 10*gib, 20*gib, 10*gib)
	among := func(nodes ...string) ledger.Verdict {
		r, _ := c.Request(ledger.RequestOptions{Pod: "p", Among: nodes}, replicated("a", 2, gib))
		_, verdict := c.Reserve("n1", r)
		return verdict
	}
	c.wantReason(among(), ledger.Fits)
	c.wantOn(ledger.Claim("a"), "n1", "n2")
	c.wantReason(among("n3", "n1"), ledger.Fits)
	c.wantOn(ledger.Claim("a"), "n1", "n3")
	c.wantReason(among("n1"), ledger.NoStandby)
	v := volume("a", "n1", "vg0", gib, ledger.Ready)
	v.Replicas = append(v.Replicas, ledger.Replica{Node: "n2", Pool: "vg0", State: ledger.Ready, Actual: gib})
	c.ObserveVolume(v)
	c.wantReason(among("n1"), ledger.Fits) // the replica on n2 is not new
	c.ObserveVolumeGone("pvc-a", 5)
	c.wantReason(among("n1"), ledger.NoStandby) // what its node is still clearing away is none
}

func TestADemandForNoSensibleNumberOfReplicasIsInvalid(t *testing.T) {
	c := trio(t, 10*gib)
	scratch := inline("p", "x", gib)
	scratch.Factor = 2
	for _, d := range []ledger.Demand{replicated("a", -1, gib), replicated("a", 65, gib), scratch} {
		c.wantReason(c.fits("p", "n1", d), ledger.Invalid)
	}
}
