package ledger_test

import (
	"slices"
	"testing"

	"berth.dev/berth/internal/ledger"
)

func listing(generation int64, items ...ledger.Item) ledger.Report {
	vg := volumeGroup("vg0", 10*gib)
	vg.Inventory = items
	r := report("n1", vg)
	r.Generation = generation
	return r
}

func TestAVolumeTornAwayStaysChargedUntilItsNodeHasSpokenOfIt(t *testing.T) {
	c := newCluster(t)
	c.report(listing(10))
	c.ObserveVolume(volume("c", "n1", "vg0", 4*gib, ledger.Ready))
	c.ObserveVolumeGone("pvc-c", 20)
	c.wantUsed("n1", "vg0", 4*gib)
	c.report(listing(15)) // made before the agent knew
	c.wantUsed("n1", "vg0", 4*gib)
	left := ledger.Item{Owner: ledger.Volume("pvc-c"), Taken: 4 * gib}
	c.report(listing(20, left)) // the data is still there
	c.wantUsed("n1", "vg0", 4*gib)
	c.report(listing(21))
	c.wantUsed("n1", "vg0", 0)
}

func TestAListedVolumeWithAnObjectIsCountedOnce(t *testing.T) {
	c := newCluster(t)
	left := ledger.Item{Owner: ledger.Volume("pvc-c"), Taken: 4 * gib}
	c.report(listing(10, left))
	c.wantUsed("n1", "vg0", 4*gib)
	c.ObserveVolume(volume("c", "n1", "vg0", 4*gib, ledger.Ready)) // adopted again
	c.wantUsed("n1", "vg0", 4*gib)
	c.report(listing(11))
	c.wantUsed("n1", "vg0", 4*gib)
}

func TestNothingRemainsOfAVolume(t *testing.T) {
	ready := volume("c", "n1", "vg0", 4*gib, ledger.Ready)
	for name, do := range map[string]func(*cluster){
		"whose replica had gone": func(c *cluster) {
			c.ObserveVolume(volume("c", "n1", "vg0", 4*gib, ledger.Gone))
			c.ObserveVolumeGone("pvc-c", 20)
		},
		"whose node does not say what it knows": func(c *cluster) {
			c.report(listing(0))
			c.ObserveVolumeGone("pvc-c", 20)
		},
		"whose node knew already": func(c *cluster) {
			c.report(listing(20))
			c.ObserveVolumeGone("pvc-c", 20)
		},
		"whose node has gone": func(c *cluster) {
			c.ObserveVolumeGone("pvc-c", 20)
			c.ObserveNodeGone("n1")
		},
		"when its node no longer says what it knows": func(c *cluster) {
			c.ObserveVolumeGone("pvc-c", 20)
			c.report(listing(0))
		},
		"when it is not known when it went": func(c *cluster) { c.ObserveVolumeGone("pvc-c", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.report(listing(10))
			c.ObserveVolume(ready)
			do(c)
			c.wantUsed("n1", "vg0", 0)
		})
	}
}

func TestAVolumeMadeAgainTakesOverItsRemains(t *testing.T) {
	c := newCluster(t)
	c.report(listing(10))
	c.ObserveVolume(volume("c", "n1", "vg0", 6*gib, ledger.Ready))
	c.ObserveVolumeGone("pvc-c", 20)
	c.wantReason(c.fits("p", "n1", claimed("c", 6*gib)), ledger.Fits) // its own remains do not stand in its way
	c.reserve("p", "n1", claimed("c", 6*gib))
	c.wantUsed("n1", "vg0", 6*gib)
	c.wantReason(c.fits("p", "n1", claimed("c", 6*gib)), ledger.Fits) // nor beside its own hold
	c.report(listing(20))                                             // nothing remains, the hold does
	c.wantUsed("n1", "vg0", 6*gib)
	c.ObserveVolume(volume("c", "n1", "vg0", 6*gib, ledger.Pending))
	c.wantUsed("n1", "vg0", 6*gib)
}

func TestAnInlineVolumeIsWhereItsNodeListsIt(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib), volumeGroup("vg1", 8*gib)))
	c.ObservePod(boundPod("p", "n1", ledger.InlineVolume{Name: "a", Class: "fast", Bytes: 2 * gib}))
	c.wantUsed("n1", "vg0", 2*gib) // a guess after a restart
	listed := volumeGroup("vg1", 8*gib)
	listed.Inventory = []ledger.Item{{Owner: ledger.Inline("p", "a"), Taken: 2 * gib}}
	c.report(report("n1", volumeGroup("vg0", 10*gib), listed))
	c.wantUsed("n1", "vg0", 0)
	c.wantUsed("n1", "vg1", 2*gib)
	c.ObservePodGone("p") // the pod is gone, its volume is not
	c.wantUsed("n1", "vg1", 2*gib)
	c.report(report("n1", volumeGroup("vg0", 10*gib), volumeGroup("vg1", 8*gib)))
	c.wantUsed("n1", "vg1", 0)
}

func TestChargesKnownBeforeTheReportAreReckonedWithIt(t *testing.T) {
	c := newCluster(t, report("n2", volumeGroup("vg0", gib)))
	c.class(ledger.Class{Name: "fast", Layout: ledger.Layout{Mirrors: 2, Metadata: 1}})
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Ready))
	c.ObserveClaim(ledger.ClaimObject{UID: "d", Class: "fast", Requested: gib, SelectedNode: "n1"})
	c.wantReason(c.fits("p", "n1", claimed("e", gib)), ledger.NotReported)
	c.report(report("n1", volumeGroup("vg0", 10*gib)))
	c.wantUsed("n1", "vg0", 6*gib+16*mib)
}

func TestANodeThatGoesKeepsItsChargesForItsReturn(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 8*gib, ledger.Ready))
	c.ObserveNodeGone("n1")
	c.wantReason(c.fits("p", "n1", claimed("d", gib)), ledger.NotReported)
	c.report(report("n1", volumeGroup("vg0", 10*gib)))
	c.wantUsed("n1", "vg0", 8*gib)
}

func TestNothingIsKeptOfEndedPodsVolumesAndNodes(t *testing.T) {
	c := newCluster(t)
	c.reserve("p", "n1", claimed("c", gib), inline("p", "a", gib))
	c.ObserveVolume(volume("c", "n1", "vg0", gib, ledger.Ready))
	c.ObservePod(boundPod("p", "n1", ledger.InlineVolume{Name: "a", Class: "fast", Bytes: gib}))
	c.ObservePodGone("p")
	c.ObserveVolumeGone("pvc-c", 0)
	c.ObserveNodeGone("n1")
	if names := c.NodeNames(); len(names) > 0 {
		t.Errorf("the ledger still knows the nodes %v", names)
	}
}

func TestAReportAtTheRevisionOfTheDeletionHasSpokenOfIt(t *testing.T) {
	c := newCluster(t)
	c.report(listing(10))
	c.ObserveVolume(volume("c", "n1", "vg0", 4*gib, ledger.Ready))
	c.ObserveVolumeGone("pvc-c", 20)
	c.report(listing(20))
	c.wantUsed("n1", "vg0", 0)
}

func TestTheRemainsOfAnEarlierVolumeDoNotComeBack(t *testing.T) {
	c := newCluster(t)
	c.report(listing(10))
	c.ObserveVolume(volume("c", "n1", "vg0", 4*gib, ledger.Ready))
	c.ObserveVolumeGone("pvc-c", 20)
	c.ObserveVolume(volume("c", "n1", "vg0", 4*gib, ledger.Ready))
	c.ObserveVolume(volume("c", "n1", "vg0", 4*gib, ledger.Gone))
	c.ObserveVolumeGone("pvc-c", 30)
	c.wantUsed("n1", "vg0", 0)
}

func TestRemainsKeepTheirChargeThoughTheirClassChanges(t *testing.T) {
	c := newCluster(t)
	c.report(listing(10))
	c.ObserveVolume(volume("c", "n1", "vg0", 4*gib, ledger.Ready))
	c.ObserveVolumeGone("pvc-c", 20)
	c.class(ledger.Class{Name: "fast", Layout: ledger.Layout{Mirrors: 2}})
	c.wantUsed("n1", "vg0", 4*gib)
}

func TestAClaimThatAnotherPodHoldsStaysInItsPoolDespiteRemains(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib), volumeGroup("vg1", 9*gib)))
	held := c.reserve("p", "n1", claimed("c", gib))[ledger.Claim("c")]
	c.ObserveVolume(volume("c", "n1", held, gib, ledger.Pending))
	c.ObserveVolumeGone("pvc-c", 20)
	c.ObserveVolume(volume("x", "n1", held, 5*gib, ledger.Ready)) // the other pool is better by now
	if got := c.reserve("q", "n1", claimed("c", gib))[ledger.Claim("c")]; got != held {
		t.Errorf("the second pod was given %s, the first holds %s", got, held)
	}
	c.Unreserve("p", "n1")
	c.ObserveNodeGone("n1")
	c.wantUsed("n1", held, 6*gib)
}

func TestAClaimsHoldChoosesItsPoolOnceItsRemainsAreCleared(t *testing.T) {
	pools := []ledger.Pool{volumeGroup("vg0", 10*gib), volumeGroup("vg1", 20*gib)}
	c := newCluster(t, report("n1", pools...))
	c.ObserveVolume(volume("c", "n1", "vg0", 4*gib, ledger.Ready))
	c.ObserveVolumeGone("pvc-c", 20)
	c.ObserveClaim(ledger.ClaimObject{UID: "c", Class: "fast", Requested: 4 * gib, SelectedNode: "n1"})
	c.reserve("q", "n1", claimed("d", 20*gib)) // all of vg1
	cleared := report("n1", pools...)
	cleared.Generation = 20
	c.report(cleared)
	c.wantUsed("n1", "vg0", 4*gib)
	c.wantUsed("n1", "vg1", 20*gib)
}

// twoReplicas is a Volume of 4 GiB on each of n1 and n2, which reported before it.
func twoReplicas(t *testing.T) (*cluster, ledger.VolumeObject) {
	t.Helper()
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib)), report("n2", volumeGroup("vg0", 10*gib)))
	v := volume("c", "n1", "vg0", 4*gib, ledger.Ready)
	v.Replicas = append(v.Replicas, ledger.Replica{Node: "n2", Pool: "vg0", State: ledger.Ready, Actual: 4 * gib})
	c.ObserveVolume(v)
	return c, v
}

// gone is the Volume at a revision, with the replicas on these nodes gone.
func gone(v ledger.VolumeObject, revision int64, nodes ...string) ledger.VolumeObject {
	v.Revision, v.Replicas = revision, slices.Clone(v.Replicas)
	for i := range v.Replicas {
		if slices.Contains(nodes, v.Replicas[i].Node) {
			v.Replicas[i].State = ledger.Gone
		}
	}
	return v
}

func TestANodeSpeaksOnlyForTheRemainsOnItself(t *testing.T) {
	c, _ := twoReplicas(t)
	c.ObserveVolumeGone("pvc-c", 20)
	c.report(listing(20))
	c.wantUsed("n1", "vg0", 0)
	c.wantUsed("n2", "vg0", 4*gib)
	other := listing(20)
	other.Node = "n2"
	c.report(other)
	c.wantUsed("n2", "vg0", 0)
	c.report(listing(21)) // lists nothing that the ledger remembers
	c.wantUsed("n1", "vg0", 0)
}

func TestOneReplicaThatIsGoneFreesNoneOfTheOthers(t *testing.T) {
	c, v := twoReplicas(t)
	c.ObserveVolume(gone(v, 20, "n1"))
	c.reserve("p", "n2", claimed("c", 4*gib)) // it is there already
	c.wantUsed("n2", "vg0", 4*gib)
	c.Unreserve("p", "n2")
	c.ObserveVolumeGone("pvc-c", 30)
	c.wantUsed("n1", "vg0", 4*gib)
	c.wantUsed("n2", "vg0", 4*gib)
}

func TestTheRemainsOfAnEarlierVolumeAreChargedUntilItsNodeReportsThem(t *testing.T) {
	c, v := twoReplicas(t)
	c.ObserveVolumeGone("pvc-c", 20)
	c.ObserveVolume(gone(v, 30, "n1", "n2"))
	c.wantUsed("n1", "vg0", 4*gib)
	c.wantUsed("n2", "vg0", 4*gib)
	// The claim cannot use a replica that is gone, and needs room beside it.
	c.wantReason(c.fits("p", "n1", claimed("c", 7*gib)), ledger.NoRoom)
	c.ObserveVolumeGone("pvc-c", 40)
	c.wantReason(c.fits("p", "n1", claimed("c", 7*gib)), ledger.NoRoom)
	c.reserve("p", "n1", claimed("c", 4*gib))
	c.wantUsed("n1", "vg0", 8*gib)
	c.report(listing(25))
	c.wantUsed("n1", "vg0", 4*gib)
}

func TestTheRemainsOfAReplicaAreChargedWithoutItsGrant(t *testing.T) {
	c := newCluster(t)
	v := volume("c", "n1", "vg0", 2*gib, ledger.Ready)
	c.ObserveVolume(v)
	wish(c, 6*gib)
	c.wantUsed("n1", "vg0", 6*gib)
	c.ObserveVolume(gone(v, 20, "n1"))
	c.wantUsed("n1", "vg0", 2*gib)
}
