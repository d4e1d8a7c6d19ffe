package ledger_test

import (
	"testing"

	"berth.dev/berth/internal/ledger"
)

// Each of these tests is named after a defect of an earlier scheduler for local
// storage, and shows that it is absent. B1 to B20 are their numbers in the
// project's list of known defects.

func boundPod(uid, node string, volumes ...ledger.InlineVolume) ledger.PodObject {
	return ledger.PodObject{UID: uid, Node: node, Inline: volumes}
}

func TestB1AnInlineVolumeStaysChargedBetweenBindingAndRunning(t *testing.T) {
	c := newCluster(t)
	c.reserve("p", "n1", inline("p", "scratch", 6*gib))
	pod := boundPod("p", "n1", ledger.InlineVolume{Name: "scratch", Class: "fast", Bytes: 6 * gib})
	c.ObservePod(pod) // bound, its image is being pulled
	c.wantUsed("n1", "vg0", 6*gib)
	c.wantReason(c.fits("q", "n1", inline("q", "scratch", 6*gib)), ledger.NoRoom)

	restarted := newCluster(t)
	restarted.ObservePod(pod)
	restarted.wantUsed("n1", "vg0", 6*gib)
}

func TestB2AClaimDeletedWhileItIsHeldIsRefundedByUnreserve(t *testing.T) {
	c := newCluster(t)
	c.ObserveClaim(ledger.ClaimObject{UID: "c", Class: "fast", Requested: 6 * gib})
	c.reserve("p", "n1", claimed("c", 6*gib))
	c.ObserveClaimGone("c")
	c.wantUsed("n1", "vg0", 6*gib)
	c.Unreserve("p", "n1")
	c.wantUsed("n1", "vg0", 0)
}

func TestB3ARefundGoesToTheRecordedPoolAndNotToThatOfTheEvent(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib), volumeGroup("vg1", 10*gib)))
	c.ObserveVolume(volume("c", "n1", "vg0", 4*gib, ledger.Ready))
	c.wantUsed("n1", "vg0", 4*gib)
	c.ObserveVolume(volume("c", "n1", "vg1", 4*gib, ledger.Ready)) // edited by hand
	c.wantUsed("n1", "vg0", 0)
	c.wantUsed("n1", "vg1", 4*gib)
	c.ObserveVolumeGone("pvc-c", 0)
	c.wantUsed("n1", "vg1", 0)
}

func TestB4ATombstoneIsADeletionLikeAnyOther(t *testing.T) {
	// Deletions are observed by name or UID alone: there is no last known object
	// that could be of an unexpected type, or stale.
	c := newCluster(t)
	c.ObservePod(boundPod("p", "n1", ledger.InlineVolume{Name: "a", Class: "fast", Bytes: gib}))
	c.ObserveVolume(volume("c", "n1", "vg0", gib, ledger.Ready))
	c.ObservePV(ledger.PVObject{Name: "pv", Volume: "pvc-c", Claim: "c"})
	c.wantUsed("n1", "vg0", 2*gib)
	c.ObservePodGone("p")
	c.ObserveVolumeGone("pvc-c", 0)
	c.ObservePVGone("pv")
	c.wantUsed("n1", "vg0", 0)
}

func TestB5APoolMissingFromOneReportComesBackWithItsCharges(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 8*gib, ledger.Ready))
	c.report(report("n1"))
	c.wantReason(c.fits("p", "n1", claimed("d", gib)), ledger.NotServed)
	c.report(report("n1", volumeGroup("vg0", 10*gib)))
	c.wantUsed("n1", "vg0", 8*gib)
	c.wantReason(c.fits("p", "n1", claimed("d", 4*gib)), ledger.NoRoom)
}

func TestB6ReservationsInFlightSurviveARestart(t *testing.T) {
	c := newCluster(t)
	// PreBind had created the Volume of c; for d another scheduler had only
	// named the node.
	c.ObserveVolume(volume("c", "n1", "vg0", 3*gib, ledger.Pending))
	c.ObserveClaim(ledger.ClaimObject{UID: "c", Class: "fast", Requested: 3 * gib})
	c.ObserveClaim(ledger.ClaimObject{UID: "d", Class: "fast", Requested: 5 * gib, SelectedNode: "n1"})
	c.wantUsed("n1", "vg0", 8*gib)
	c.wantReason(c.fits("q", "n1", claimed("e", 3*gib)), ledger.NoRoom)
}

func TestB7NoQuestionIsAnsweredOnAPartialLedger(t *testing.T) {
	l := ledger.New()
	if err := l.ObserveClass(ledger.Class{Name: "fast", InlineNamespaces: []string{"*"}}); err != nil {
		t.Fatal(err)
	}
	if err := l.ObserveNode(report("n1", volumeGroup("vg0", 10*gib))); err != nil {
		t.Fatal(err)
	}
	r, verdict := l.Request(ledger.RequestOptions{Pod: "p"}, claimed("c", gib))
	if verdict.Reason != ledger.NotSynced || l.Node("n1").Fit(r).Reason != ledger.NotSynced {
		t.Errorf("the verdict is %v, want NotSynced", verdict.Reason)
	}
	if _, verdict := l.Reserve("n1", r); verdict.Reason != ledger.NotSynced {
		t.Errorf("Reserve says %v, want NotSynced", verdict.Reason)
	}
	if room := l.Room("n1", "fast"); room != (ledger.Room{}) {
		t.Errorf("room is %+v, want none", room)
	}
	l.SetSynced()
	if _, verdict := l.Reserve("n1", r); !verdict.Fits() {
		t.Errorf("once synced, Reserve says %v", verdict.Reason)
	}
}

func TestB7NothingIsGrantedOnAPartialLedger(t *testing.T) {
	l := ledger.New()
	if err := l.ObserveClass(ledger.Class{Name: "fast", InlineNamespaces: []string{"*"}}); err != nil {
		t.Fatal(err)
	}
	if err := l.ObserveNode(report("n1", volumeGroup("vg0", 10*gib))); err != nil {
		t.Fatal(err)
	}
	c := &cluster{l, t}
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Ready))
	wish(c, 9*gib)
	c.ObserveClaim(ledger.ClaimObject{UID: "d", Class: "fast", Requested: 3 * gib, SelectedNode: "n1"})
	c.wantUsed("n1", "vg0", 2*gib)
	c.ObserveVolume(volume("last", "n1", "vg0", 4*gib, ledger.Ready))
	l.SetSynced()
	c.wantUsed("n1", "vg0", 9*gib) // there is room for d, and none for c to grow
}

func TestB8AReservationWhoseBindingTimedOutStaysWhileAProvisionerMayBeAtWork(t *testing.T) {
	c := newCluster(t)
	claim := ledger.ClaimObject{UID: "c", Class: "fast", Requested: 6 * gib}
	c.ObserveClaim(claim)
	c.reserve("p", "n1", claimed("c", 6*gib))
	claim.SelectedNode = "n1"
	c.ObserveClaim(claim)
	c.Unreserve("p", "n1") // PreBind gave up waiting
	c.wantUsed("n1", "vg0", 6*gib)
	c.wantReason(c.fits("q", "n1", claimed("d", 6*gib)), ledger.NoRoom)
	c.wantReason(c.fits("p", "n1", claimed("c", 6*gib)), ledger.Fits)

	claim.SelectedNode = "" // the provisioner gave up too
	c.ObserveClaim(claim)
	c.wantUsed("n1", "vg0", 0)
}

func TestB9ARefundNeverFreesTheDiskOfAnotherClaim(t *testing.T) {
	c := newCluster(t, report("n1", disk("sda", 4*gib, "", "fast"), disk("sdb", 8*gib, "", "fast")))
	first := c.reserve("p", "n1", claimed("c", 2*gib))[ledger.Claim("c")]
	second := c.reserve("q", "n1", claimed("d", 2*gib))[ledger.Claim("d")]
	if first != "sda" || second != "sdb" {
		t.Fatalf("the disks are %s and %s, want sda and sdb", first, second)
	}
	c.Unreserve("p", "n1")
	c.Unreserve("p", "n1")
	c.Unreserve("p", "n2")
	c.ObservePodGone("p")
	c.ObserveVolumeGone("sdb", 0)
	c.ObserveClaimGone("c")
	c.wantUsed("n1", "sda", 0)
	c.wantUsed("n1", "sdb", 8*gib)
}

func TestB10AnInlineVolumeKnownFromEventsAloneIsRefundedInFull(t *testing.T) {
	c := newCluster(t)
	pod := boundPod("p", "n1", ledger.InlineVolume{Name: "a", Class: "fast", Bytes: 6 * gib})
	c.ObservePod(pod)
	c.wantUsed("n1", "vg0", 6*gib)
	pod.Ended = true
	c.ObservePod(pod)
	c.wantUsed("n1", "vg0", 0)
	c.wantReason(c.fits("q", "n1", inline("q", "a", 10*gib)), ledger.Fits)
}
