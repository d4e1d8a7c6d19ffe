package ledger_test

import (
	"testing"

	"berth.dev/berth/internal/ledger"
)

// step is one event in the life of a claim, and the charge that must follow it.
type step struct {
	what string
	do   func(*cluster)
	want int64
}

func walk(t *testing.T, steps []step) {
	t.Helper()
	c := newCluster(t)
	for _, s := range steps {
		s.do(c)
		if got := c.used("n1", "vg0"); got != s.want {
			t.Fatalf("after %q %d MiB are charged, want %d: %v", s.what, got/mib, s.want/mib, c.charges("n1", "vg0"))
		}
	}
}

const size = 3 * gib

func claimIs(selected string, bound bool) func(*cluster) {
	return func(c *cluster) {
		c.ObserveClaim(ledger.ClaimObject{UID: "c", Class: "fast", Requested: size, SelectedNode: selected, Bound: bound})
	}
}

func volumeIs(state ledger.ReplicaState) func(*cluster) {
	return func(c *cluster) { c.ObserveVolume(volume("c", "n1", "vg0", size, state)) }
}

func reserved(c *cluster)   { c.reserve("p", "n1", claimed("c", size)) }
func unreserved(c *cluster) { c.Unreserve("p", "n1") }
func podBound(c *cluster)   { c.ObservePod(ledger.PodObject{UID: "p", Node: "n1"}) }
func podGone(c *cluster)    { c.ObservePodGone("p") }
func volumeGone(c *cluster) { c.ObserveVolumeGone("pvc-c", 0) }
func claimGone(c *cluster)  { c.ObserveClaimGone("c") }

func pvIs(c *cluster) { c.ObservePV(ledger.PVObject{Name: "pv", Volume: "pvc-c", Claim: "c"}) }

func TestAChargePassesFromHoldToVolumeCountedExactlyOnce(t *testing.T) {
	for name, steps := range map[string][]step{
		"in the usual order": {
			{"claim", claimIs("", false), 0}, {"Reserve", reserved, size}, {"Volume wanted", volumeIs(ledger.Pending), size},
			{"node selected", claimIs("n1", false), size}, {"carved", volumeIs(ledger.Ready), size}, {"PV", pvIs, size},
			{"claim bound", claimIs("n1", true), size}, {"pod bound", podBound, size}, {"pod gone", podGone, size},
			{"claim gone", claimGone, size}, {"replica gone", volumeIs(ledger.Gone), 0}, {"Volume gone", volumeGone, 0},
		},
		"when the Volume is seen last": {
			{"Reserve", reserved, size}, {"pod bound", podBound, size}, {"claim bound", claimIs("n1", true), size},
			{"PV", pvIs, size}, {"Volume", volumeIs(ledger.Ready), size}, {"replica gone", volumeIs(ledger.Gone), 0},
		},
		"when the claim is never seen": {
			{"Reserve", reserved, size}, {"pod bound", podBound, size}, {"Volume", volumeIs(ledger.Ready), size},
			{"replica gone", volumeIs(ledger.Gone), 0}, {"Volume gone", volumeGone, 0},
		},
		"when binding fails before the Volume exists": {
			{"Reserve", reserved, size}, {"Unreserve", unreserved, 0}, {"again", unreserved, 0},
		},
		"when binding fails after the Volume exists": {
			{"Reserve", reserved, size}, {"Volume wanted", volumeIs(ledger.Pending), size}, {"Unreserve", unreserved, size},
			{"Reserve again", reserved, size}, {"carved", volumeIs(ledger.Ready), size}, {"Unreserve", unreserved, size},
		},
		"when the node refuses": {
			{"Reserve", reserved, size}, {"Volume wanted", volumeIs(ledger.Pending), size},
			{"refused, still in flight", volumeIs(ledger.Refused), size}, {"Unreserve", unreserved, 0},
		},
		"when the Volume is deleted under a pod in flight": {
			{"Reserve", reserved, size}, {"Volume wanted", volumeIs(ledger.Pending), size}, {"Volume gone", volumeGone, size},
			{"Unreserve", unreserved, 0},
		},
		"when the pod goes in mid-flight": {
			{"Reserve", reserved, size}, {"pod gone", podGone, 0}, {"late Unreserve", unreserved, 0},
		},
		"when the pod goes and a provisioner may be at work": {
			{"Reserve", reserved, size}, {"node selected", claimIs("n1", false), size}, {"pod gone", podGone, size},
			{"claim gone", claimGone, 0},
		},
		"when the claim forgets its node under a pod that was bound": {
			{"Reserve", reserved, size}, {"node selected", claimIs("n1", false), size}, {"pod bound", podBound, size},
			{"node forgotten", claimIs("", false), size}, {"pod gone", podGone, 0},
		},
		"when the pod was reserved for twice": {
			{"Reserve", reserved, size}, {"Reserve again", reserved, size}, {"pod bound", podBound, size},
			{"carved", volumeIs(ledger.Ready), size}, {"refused after all", volumeIs(ledger.Refused), 0},
		},
		"when a PersistentVolume is all there is": {
			{"PV", pvIs, 0}, {"Volume", volumeIs(ledger.Ready), size}, {"PV gone", func(c *cluster) { c.ObservePVGone("pv") }, size},
		},
	} {
		t.Run(name, func(t *testing.T) { walk(t, steps) })
	}
}

func TestAVolumeThatMovesIsChargedWhereItIsAndWhereItGoes(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib)), report("n2", volumeGroup("vg0", 10*gib)))
	c.ObserveVolume(volume("c", "n1", "vg0", size, ledger.Pending))
	c.reserve("p", "n2", claimed("c", size))
	c.wantUsed("n1", "vg0", size)
	c.wantUsed("n2", "vg0", size)
	c.ObserveVolume(volume("c", "n2", "vg0", size, ledger.Pending))
	c.wantUsed("n1", "vg0", 0)
	c.wantUsed("n2", "vg0", size)
}

func TestAHoldThatMovedToItsPodsNodeIsFreeOnTheOthers(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib)), report("n2", volumeGroup("vg0", 10*gib)))
	// An extender holds on every node that it lets pass.
	c.reserve("p", "n1", claimed("c", size))
	c.reserve("p", "n2", claimed("c", size))
	c.ObservePod(ledger.PodObject{UID: "p", Node: "n2"})
	c.wantUsed("n1", "vg0", 0)
	c.wantUsed("n2", "vg0", size)
}

func TestOfAPodsDemandsAllAreReservedOrNone(t *testing.T) {
	c := newCluster(t)
	_, verdict := c.Reserve("n1", c.request("p", claimed("c", 6*gib), claimed("d", 6*gib)))
	c.wantReason(verdict, ledger.NotTogether)
	c.wantUsed("n1", "vg0", 0)
}

func TestAPromiseIsNotBrokenByAClassWithLessSpare(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib, "careful", "greedy")))
	c.class(ledger.Class{Name: "careful", Spare: 4 * gib})
	c.class(ledger.Class{Name: "greedy"})
	careful := ledger.Demand{Owner: ledger.Claim("c"), Class: "careful", Bytes: 5 * gib}
	greedy := ledger.Demand{Owner: ledger.Claim("d"), Class: "greedy", Bytes: 4 * gib}
	c.reserve("p", "n1", careful)
	// The node might carve the greedy one first, and would then have to refuse.
	c.wantReason(c.fits("q", "n1", greedy), ledger.NoRoom)
	v := volume("c", "n1", "vg0", 5*gib, ledger.Ready)
	v.Class = "careful"
	c.ObserveVolume(v)
	c.wantReason(c.fits("q", "n1", greedy), ledger.Fits)
	c.wantReason(c.fits("q", "n1", careful, greedy), ledger.Fits) // careful is there already
}

func TestCreateVolumeLearnsWhereRoomIsHeld(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 5*gib), volumeGroup("vg1", 9*gib)))
	c.ObserveClaim(ledger.ClaimObject{UID: "c", Class: "fast", Requested: size})
	if pool, held := c.Held(ledger.Claim("c"), "n1"); held {
		t.Errorf("room is held in %s before anybody asked", pool)
	}
	want := c.reserve("p", "n1", claimed("c", size))[ledger.Claim("c")]
	c.ObserveClaim(ledger.ClaimObject{UID: "c", Class: "fast", Requested: size, SelectedNode: "n1"})
	c.Unreserve("p", "n1")
	if pool, held := c.Held(ledger.Claim("c"), "n1"); !held || pool != want {
		t.Errorf("room is held in %q (%t), want %s", pool, held, want)
	}
	if _, held := c.Held(ledger.Claim("c"), "n2"); held {
		t.Error("room is held on another node")
	}
	if _, held := c.Held(ledger.Claim("unknown"), "n1"); held {
		t.Error("room is held for what is not known")
	}
}

func TestAClaimThatAPodMountsTwiceCountsOnce(t *testing.T) {
	c := newCluster(t)
	c.wantReason(c.fits("p", "n1", claimed("c", 6*gib), claimed("c", 6*gib)), ledger.Fits)
}

func TestUnreserveConcernsTheNamedNodeAlone(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib)), report("n2", volumeGroup("vg0", 10*gib)))
	c.reserve("p", "n1", claimed("c", size))
	c.reserve("p", "n2", claimed("c", size))
	c.Unreserve("p", "n1")
	c.wantUsed("n1", "vg0", 0)
	c.wantUsed("n2", "vg0", size)
}

func TestASecondPodDoesNotChangeTheHoldOfTheFirst(t *testing.T) {
	c := newCluster(t)
	c.reserve("p", "n1", claimed("c", size))
	c.reserve("q", "n1", claimed("c", gib)) // has not seen the claim's size
	c.wantUsed("n1", "vg0", size)
}

func TestAnInlineVolumeIsHeldForItsPodThoughThePodAsItIsBoundDoesNotNameIt(t *testing.T) {
	c := newCluster(t)
	c.reserve("p", "n1", inline("p", "a", size))
	podBound(c)
	c.wantUsed("n1", "vg0", size)
	podGone(c)
	c.wantUsed("n1", "vg0", 0)
}

func TestAPodThatGoesGivesBackItsOwnHoldsAndNoOthers(t *testing.T) {
	c := newCluster(t)
	c.reserve("p", "n1", claimed("c", size), claimed("d", gib))
	podBound(c)
	volumeIs(ledger.Ready)(c) // the hold for c is done, that for d is not
	c.wantUsed("n1", "vg0", size+gib)
	podGone(c)
	c.wantUsed("n1", "vg0", size)
}

func TestAPodThatIsBoundEndsNoHoldOfAnother(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib)), report("n2", volumeGroup("vg0", 10*gib)))
	c.reserve("p", "n1", claimed("c", size))
	c.reserve("p", "n2", claimed("c", size))
	c.reserve("q", "n2", claimed("c", size))
	c.ObservePod(ledger.PodObject{UID: "q", Node: "n2"})
	c.wantUsed("n1", "vg0", size)
	c.wantUsed("n2", "vg0", size)
}

func TestOfPodsThatHoldOneClaimTheOneThatIsBoundIsDoneWithTheVolume(t *testing.T) {
	c := newCluster(t)
	c.reserve("p", "n1", claimed("c", size))
	c.reserve("q", "n1", claimed("c", size))
	c.ObservePod(ledger.PodObject{UID: "q", Node: "n1"})
	volumeIs(ledger.Ready)(c)
	volumeIs(ledger.Refused)(c)
	c.wantUsed("n1", "vg0", size) // p is still in flight
	unreserved(c)
	c.wantUsed("n1", "vg0", 0)
}

func TestAVolumeIsItsOwnReservation(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib), volumeGroup("vg1", 5*gib)))
	c.reserve("p", "n1", claimed("c", size)) // in vg0
	c.ObserveVolume(ledger.VolumeObject{Name: "static", Class: "fast", Capacity: size,
		Replicas: []ledger.Replica{{Node: "n1", Pool: "vg1", State: ledger.Ready, Actual: size}}})
	c.ObservePV(ledger.PVObject{Name: "pv", Volume: "static", Claim: "c"})
	if got := c.reserve("q", "n1", claimed("c", size))[ledger.Claim("c")]; got != "vg1" {
		t.Errorf("the claim is in %s, its Volume in vg1", got)
	}
	if c.KnowsPod("q") {
		t.Error("room is held for a pod that needs none")
	}
	r, _ := c.Request(ledger.RequestOptions{}, ledger.Demand{Owner: ledger.Volume("static"), Class: "fast", Bytes: 100 * gib})
	c.wantReason(c.Node("n1").Fit(r), ledger.Fits) // it is there
	_, verdict := c.Reserve("n1", r)
	c.wantReason(verdict, ledger.Invalid) // its placement says so
}

func TestAClaimThatAnotherPodHoldsGoesNowhereElseThoughItIsHeldHereToo(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib)), report("n2", volumeGroup("vg0", 10*gib)), report("n3", volumeGroup("vg0", 10*gib)))
	c.reserve("p", "n1", claimed("c", size))
	c.reserve("p", "n2", claimed("c", size))
	c.reserve("q", "n2", claimed("c", size))
	c.Unreserve("p", "n2")
	c.wantReason(c.fits("q", "n3", claimed("c", size)), ledger.HeldElsewhere)
}

func TestAPodThatReservesAgainHoldsItsNewPlaceAlone(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib), volumeGroup("vg1", 10*gib)))
	demand := claimed("c", 2*gib)
	for _, demand.Pool = range []string{"vg0", "vg1"} {
		c.reserve("p", "n1", demand)
	}
	c.wantUsed("n1", "vg0", 0)
	c.wantUsed("n1", "vg1", 2*gib)
}
