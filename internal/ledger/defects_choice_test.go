package ledger_test

import (
	"slices"
	"testing"

	"berth.dev/berth/internal/ledger"
)

func TestB11ASpareInPercentIsKeptFree(t *testing.T) {
	c := newCluster(t)
	c.class(ledger.Class{Name: "fast", SparePercent: 25})
	c.wantReason(c.fits("p", "n1", claimed("c", 8*gib)), ledger.NoRoom)
	c.wantReason(c.fits("p", "n1", claimed("c", 7*gib)), ledger.Fits)
}

func TestB12AListRepeatedDeductsNothingTwice(t *testing.T) {
	c := newCluster(t)
	v := volume("c", "n1", "vg0", 3*gib, ledger.Ready)
	pv := ledger.PVObject{Name: "pv", Volume: v.Name, Claim: "c"}
	for range 3 {
		c.ObserveVolume(v)
		c.ObservePV(pv)
		c.ObserveClaim(ledger.ClaimObject{UID: "c", Class: "fast", Requested: 3 * gib, SelectedNode: "n1", Bound: true})
		c.ObservePod(boundPod("p", "n1", ledger.InlineVolume{Name: "a", Class: "fast", Bytes: gib}))
		c.report(report("n1", volumeGroup("vg0", 10*gib)))
		c.wantUsed("n1", "vg0", 4*gib)
	}
}

func TestB12TwoClaimsNeverGetTheSameDisk(t *testing.T) {
	c := newCluster(t, report("n1", disk("sda", 4*gib, "", "fast"), disk("sdb", 4*gib, "", "fast")))
	got := sorted(c.reserve("p", "n1", claimed("c", gib), claimed("d", gib)))
	if !slices.Equal(got, []string{"sda", "sdb"}) {
		t.Errorf("the disks are %v, want both", got)
	}
	c.wantReason(c.fits("q", "n1", claimed("e", gib)), ledger.NoRoom)
}

func TestB12SpreadCountsItsOwnEarlierPicks(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib), volumeGroup("vg1", 9*gib)))
	got := sorted(c.reserve("p", "n1", claimed("c", 2*gib), claimed("d", 2*gib)))
	if !slices.Equal(got, []string{"vg0", "vg1"}) {
		t.Errorf("the volumes went to %v, want one to each", got)
	}
}

func TestB12APoolWithoutANameIsRefusedAndOffersNothing(t *testing.T) {
	c := newCluster(t)
	err := c.ObserveNode(report("n1", volumeGroup("", 0), volumeGroup("vg0", 10*gib)))
	if err == nil {
		t.Error("a pool without a name passed unnoticed")
	}
	c.wantReason(c.fits("p", "n1", claimed("c", 5*gib)), ledger.Fits)
}

func TestB12PodsScheduledAtOnceNeverShareTheSameRoom(t *testing.T) {
	c := newCluster(t)
	bound := 0
	for _, pod := range []string{"1", "2", "3", "4", "5"} {
		if _, verdict := c.Reserve("n1", c.request(pod, claimed("c"+pod, 3*gib))); verdict.Fits() {
			bound++
		}
	}
	if bound != 3 {
		t.Errorf("%d pods of 3 GiB were given room in 10 GiB, want 3", bound)
	}
}

func TestB13AVolumeWhoseDataIsMissingKeepsItsChargeAndARefusedOneDoesNot(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("lost", "n1", "vg0", 4*gib, ledger.Ready))
	c.report(report("n1", volumeGroup("vg0", 10*gib))) // says nothing of it
	c.wantUsed("n1", "vg0", 4*gib)

	c.ObserveVolume(volume("c", "n1", "vg0", 6*gib, ledger.Refused)) // no space on the node
	c.wantUsed("n1", "vg0", 4*gib)
	c.wantReason(c.fits("p", "n1", claimed("d", 6*gib)), ledger.Fits)
}

func TestB14AChoiceNeverOverwritesThePoolOfAVolume(t *testing.T) {
	c := newCluster(t, report("n1", disk("sda", 4*gib, "", "fast"), disk("sdb", 4*gib, "", "fast")))
	held := c.reserve("p", "n1", claimed("c", gib))[ledger.Claim("c")]
	if held != "sda" {
		t.Fatalf("the hold is on %s", held)
	}
	// The claim turns out to be bound to a static volume on the other disk.
	static := ledger.VolumeObject{Name: "vol-s", Class: "fast", Capacity: gib, Replicas: []ledger.Replica{{Node: "n1", Pool: "sdb", State: ledger.Ready, Actual: gib}}}
	c.ObserveVolume(static)
	c.ObservePV(ledger.PVObject{Name: "pv", Volume: "vol-s", Claim: "c"})
	c.wantUsed("n1", "sda", 0)
	c.wantUsed("n1", "sdb", 4*gib)
	c.wantReason(c.fits("q", "n1", claimed("d", gib)), ledger.Fits)
	if got := c.reserve("q", "n1", claimed("d", gib))[ledger.Claim("d")]; got != "sda" {
		t.Errorf("the next claim gets %s, want sda", got)
	}
}

func TestB15TheOrderOfAReportChangesNothing(t *testing.T) {
	a, b := volumeGroup("vg0", 10*gib), volumeGroup("vg1", 10*gib)
	one, other := newCluster(t, report("n1", a, b)), newCluster(t, report("n1", b, a))
	for pod := range 5 {
		d := claimed(string(rune('a'+pod)), gib)
		x, y := one.reserve("p", "n1", d)[d.Owner], other.reserve("p", "n1", d)[d.Owner]
		if x != y {
			t.Errorf("claim %d went to %s and to %s", pod, x, y)
		}
	}
}

func TestB16APoolThatIsNotThereOffersNothingAndLosesNothing(t *testing.T) {
	gone := volumeGroup("vg0", 10*gib)
	gone.Health = ledger.Missing
	c := newCluster(t, report("n1", gone))
	c.ObserveVolume(volume("c", "n1", "vg0", 4*gib, ledger.Ready))
	c.wantReason(c.fits("p", "n1", claimed("d", gib)), ledger.PoolMissing)
	c.wantUsed("n1", "vg0", 4*gib)
}

func TestB17ListedLeftoversAndRetainedVolumesAreDeducted(t *testing.T) {
	c := newCluster(t)
	// Neither a Volume nor a pod accounts for these; the node lists them.
	vg := volumeGroup("vg0", 10*gib)
	vg.Inventory = []ledger.Item{{Owner: ledger.Volume("vol-left"), Taken: 3 * gib}, {Owner: ledger.Inline("dead", "a"), Taken: 2 * gib}}
	c.report(report("n1", vg))
	c.wantUsed("n1", "vg0", 5*gib)
	c.wantReason(c.fits("p", "n1", claimed("d", 6*gib)), ledger.NoRoom)

	retained := newCluster(t)
	retained.ObserveVolume(volume("c", "n1", "vg0", 6*gib, ledger.Ready))
	retained.ObservePV(ledger.PVObject{Name: "pv", Volume: "pvc-c", Claim: "c"})
	retained.ObserveClaimGone("c")
	retained.wantUsed("n1", "vg0", 6*gib)
	retained.ObservePVGone("pv")
	retained.wantUsed("n1", "vg0", 6*gib)
}

func TestB18EventsAboutThingsThatAreGoneOrWereNeverSeenAreHarmless(t *testing.T) {
	c := newCluster(t)
	c.ObserveClaimGone("never")
	c.ObservePVGone("never")
	c.ObservePodGone("never")
	c.ObserveVolumeGone("never", 7)
	c.ObserveNodeGone("never")
	c.ObserveClassGone("never")
	c.Unreserve("never", "nowhere")
	c.ObservePV(ledger.PVObject{Name: "pv", Volume: "vol", Claim: "gone"})
	c.ObservePVGone("pv")
	c.wantUsed("n1", "vg0", 0)
}

func TestB19AStaticMatchNeedsNoRoomAndASharedClaimStaysWhereItIsHeld(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 4*gib)), report("n2", volumeGroup("vg0", 4*gib)))
	c.ObserveVolume(volume("full", "n1", "vg0", 4*gib, ledger.Ready))
	c.wantReason(c.fits("p", "n1"), ledger.Fits) // the match leaves no demand

	c.reserve("p", "n2", claimed("shared", 3*gib))
	c.wantReason(c.fits("q", "n1", claimed("shared", 3*gib)), ledger.HeldElsewhere)
	c.wantReason(c.fits("q", "n2", claimed("shared", 3*gib)), ledger.Fits)
	c.reserve("q", "n2", claimed("shared", 3*gib))
	c.Unreserve("p", "n2")
	c.wantUsed("n2", "vg0", 3*gib)
	c.Unreserve("q", "n2")
	c.wantUsed("n2", "vg0", 0)
}

func TestB20AskingCostsNoMemoryAndEvictionIsCountedExactly(t *testing.T) {
	c := newCluster(t)
	c.ObservePod(boundPod("victim", "n1", ledger.InlineVolume{Name: "a", Class: "fast", Bytes: 6 * gib}))
	c.ObserveVolume(volume("c", "n1", "vg0", 4*gib, ledger.Ready))
	n, r := c.Node("n1"), c.request("p", claimed("d", 6*gib))
	if allocs := testing.AllocsPerRun(100, func() { n.Fit(r) }); allocs != 0 {
		t.Errorf("Fit allocates %v times", allocs)
	}
	c.wantReason(n.Fit(r), ledger.NoRoom)
	c.wantReason(n.WithoutPods("victim").Fit(r), ledger.Fits)
	c.wantReason(n.WithoutPods("victim").Fit(c.request("p", claimed("d", 7*gib))), ledger.NoRoom)
	c.wantReason(n.Fit(r), ledger.NoRoom) // asking changed nothing
}
