package ledger_test

import (
	"slices"
	"testing"

	"berth.dev/berth/internal/ledger"
)

// wish is a bound claim that asks for so much by now.
func wish(c *cluster, bytes int64) {
	c.ObserveClaim(ledger.ClaimObject{UID: "c", Class: "fast", Requested: bytes, SelectedNode: "n1", Bound: true})
}

// wantGranted checks up to which size the volume of c is charged on n1.
func (c *cluster) wantGranted(want int64) {
	c.t.Helper()
	var got int64
	for _, p := range c.Pools("n1") {
		for _, f := range p.Facts {
			if f.Owner == ledger.Volume("pvc-c") {
				got = f.Bytes
			}
		}
	}
	if got != want {
		c.t.Errorf("%d MiB are granted, want %d", got/mib, want/mib)
	}
}

func TestAnExpansionIsChargedAsSoonAsTheClaimAsksForIt(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Ready))
	c.wantGranted(2 * gib)
	wish(c, 6*gib)
	c.wantUsed("n1", "vg0", 6*gib)
	c.wantGranted(6 * gib)
	c.wantReason(c.fits("p", "n1", claimed("d", 5*gib)), ledger.NoRoom)

	grown := volume("c", "n1", "vg0", 6*gib, ledger.Ready)
	grown.Replicas[0].Actual = 2 * gib // wanted, not yet done
	c.ObserveVolume(grown)
	c.wantUsed("n1", "vg0", 6*gib)
	grown.Replicas[0].Actual = 6 * gib
	c.ObserveVolume(grown)
	c.wantUsed("n1", "vg0", 6*gib)
}

func TestAnExpansionThatCannotBeMetClosesNoNode(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Ready))
	wish(c, 1000*gib)
	c.wantUsed("n1", "vg0", 2*gib)
	c.wantGranted(2 * gib)
	wish(c, 3*gib) // the user takes it back
	c.wantUsed("n1", "vg0", 3*gib)
	wish(c, 2*gib)
	c.wantUsed("n1", "vg0", 2*gib)
}

func TestAnExpansionNeverTakesRoomThatAPodHolds(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Ready))
	c.reserve("p", "n1", claimed("d", 7*gib))
	wish(c, 4*gib)
	c.wantUsed("n1", "vg0", 9*gib)
	c.Unreserve("p", "n1")
	c.wantUsed("n1", "vg0", 2*gib)
	c.report(report("n1", volumeGroup("vg0", 10*gib))) // and now there is room
	c.wantUsed("n1", "vg0", 4*gib)
}

func TestAnExpansionNeedsRoomForEveryReplica(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib)), report("n2", volumeGroup("vg0", 4*gib)))
	v := volume("c", "n1", "vg0", 2*gib, ledger.Ready)
	v.Replicas = append(v.Replicas, ledger.Replica{Node: "n2", Pool: "vg0", State: ledger.Ready, Actual: 2 * gib})
	c.ObserveVolume(v)
	wish(c, 6*gib)
	c.wantUsed("n1", "vg0", 2*gib)
	c.report(report("n2", volumeGroup("vg0", 8*gib)))
	c.wantUsed("n1", "vg0", 6*gib)
	c.wantUsed("n2", "vg0", 6*gib)
}

func TestAGrantedExpansionIsWeighedAnewForOtherReplicas(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib)), report("n2", volumeGroup("vg0", 4*gib)))
	v := volume("c", "n1", "vg0", 2*gib, ledger.Ready)
	c.ObserveVolume(v)
	wish(c, 6*gib)
	c.wantUsed("n1", "vg0", 6*gib)
	v.Replicas = append(v.Replicas, ledger.Replica{Node: "n2", Pool: "vg0"})
	c.ObserveVolume(v)
	c.wantUsed("n1", "vg0", 2*gib)
	c.wantUsed("n2", "vg0", 2*gib)
}

func TestTheNodesFigureForAReplicaReplacesTheReckoning(t *testing.T) {
	c := newCluster(t)
	v := volume("c", "n1", "vg0", 2*gib, ledger.Ready)
	v.Replicas[0].Taken = 5 * gib // an older layout
	c.ObserveVolume(v)
	c.wantUsed("n1", "vg0", 5*gib)
	v.Replicas[0].Actual = gib // not yet as large as wanted: reckoned
	c.ObserveVolume(v)
	c.wantUsed("n1", "vg0", 2*gib)
}

func TestARefusedGrowthIsChargedAsItIs(t *testing.T) {
	c := newCluster(t)
	v := volume("c", "n1", "vg0", 50*gib, ledger.Refused)
	v.Replicas[0].Actual = 2 * gib
	c.ObserveVolume(v)
	c.wantUsed("n1", "vg0", 2*gib)
}

func TestAVolumeOfUnknownSizeTakesItsDiskAndIsNotBeingCarved(t *testing.T) {
	c := newCluster(t, report("n1", disk("sda", 4*gib, "", "fast")))
	v := volume("c", "n1", "sda", 0, ledger.Ready)
	c.ObserveVolume(v)
	c.wantUsed("n1", "sda", 4*gib)
	v.Capacity = gib
	c.ObserveVolume(v)
	if fact := c.Pools("n1")[0].Facts[0]; fact.Carving {
		t.Errorf("it is said to be carved: %+v", fact)
	}
}

func TestAVolumeWithoutReplicasIsGrantedNothingMore(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Gone))
	wish(c, 6*gib)
	c.wantGranted(0)
}

func TestAGrantStandsHoweverOftenItsObjectsAreSeen(t *testing.T) {
	c := newCluster(t)
	v := volume("c", "n1", "vg0", 2*gib, ledger.Ready)
	v.Claim = "" // only its PersistentVolume names its claim
	pv := ledger.PVObject{Name: "pv", Volume: v.Name, Claim: "c"}
	c.ObserveVolume(v)
	c.ObservePV(pv)
	wish(c, 6*gib)
	silent := report("n1", volumeGroup("vg0", 10*gib))
	silent.Ready = false
	c.report(silent) // it would be granted nothing now
	c.ObserveVolume(v)
	c.wantGranted(6 * gib)
	c.ObservePV(pv)
	c.wantGranted(6 * gib)
}

func TestAGrantOfLessThanWasGrantedTakesNothingBack(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Ready))
	for _, bytes := range []int64{6 * gib, 4 * gib, gib} {
		if o := c.Grant("pvc-c", bytes); o.Reason != ledger.Fits {
			t.Errorf("%d MiB are refused: %+v", bytes/mib, o)
		}
		c.wantGranted(6 * gib)
	}
}

func TestAGrowthWithinItsExtentIsGrantedInAnOverfullPool(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", mib, ledger.Ready)) // it takes one extent of 4 MiB
	c.ObserveVolume(volume("d", "n1", "vg0", 11*gib, ledger.Ready))
	if o := c.Grant("pvc-c", 4*mib); o.Reason != ledger.Fits {
		t.Errorf("refused: %+v", o)
	}
	if o := c.Grant("pvc-c", 5*mib); o.Reason != ledger.NoRoom {
		t.Errorf("an extent too many: %+v", o)
	}
}

func TestAnExpansionNeedsNoRoomWhereThereIsNoReplica(t *testing.T) {
	for name, state := range map[string]ledger.ReplicaState{"gone": ledger.Gone, "refused": ledger.Refused} {
		t.Run(name, func(t *testing.T) {
			c, v := twoReplicas(t)
			c.ObserveNodeGone("n2")
			v.Replicas[1] = ledger.Replica{Node: "n2", Pool: "vg0", State: state}
			c.ObserveVolume(v)
			wish(c, 6*gib)
			c.wantGranted(6 * gib)
		})
	}
}

func TestAGrantStandsInAnyOrderOfReplicas(t *testing.T) {
	c, v := twoReplicas(t)
	wish(c, 6*gib)
	silent := report("n2", volumeGroup("vg0", 10*gib))
	silent.Ready = false
	c.report(silent) // it would be granted nothing now
	slices.Reverse(v.Replicas)
	c.ObserveVolume(v)
	c.wantGranted(6 * gib)
}

func TestOfTwoReplicasInOnePoolTheFirstCounts(t *testing.T) {
	c := newCluster(t)
	v := volume("c", "n1", "vg0", 4*gib, ledger.Ready)
	v.Replicas[0].Taken = 5 * gib
	v.Replicas = append(v.Replicas, ledger.Replica{Node: "n1", Pool: "vg0"})
	c.ObserveVolume(v)
	c.wantUsed("n1", "vg0", 5*gib)
}

func TestAWishIsNotWeighedOnAPartialLedger(t *testing.T) {
	c := &cluster{ledger.New(), t}
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Gone))
	wish(c, 6*gib)
	c.report(report("n1", volumeGroup("vg0", 10*gib)))
	c.wantGranted(0)
}

// A controller that begins hears of the Volumes one by one. The room of those to come is not there to grow into.
func TestNoGrowthTakesTheRoomOfVolumesThatAreNotKnownYet(t *testing.T) {
	c := &cluster{ledger.New(), t}
	c.class(ledger.Class{Name: "fast"})
	c.report(report("n1", volumeGroup("vg0", 10*gib)))
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Ready))
	wish(c, 6*gib)
	c.wantGranted(2 * gib)
	c.ObserveVolume(volume("d", "n1", "vg0", 7*gib, ledger.Ready))
	c.SetSynced()
	c.wantUsed("n1", "vg0", 9*gib)
	c.ObserveVolumeGone("pvc-d", 0)
	c.report(report("n1", volumeGroup("vg0", 10*gib)))
	c.wantUsed("n1", "vg0", 6*gib)
}

// A class with spare was promised that its volume leaves the spare free. Volumes of other classes must not
// take the spare before the volume is there.
func TestWhatIsYetToBeCarvedKeepsTheSpareOfItsClassFree(t *testing.T) {
	whole := volume("c", "n1", "vg0", 2*gib, ledger.Ready)
	growing := volume("c", "n1", "vg0", 2*gib, ledger.Ready)
	growing.Replicas[0].Actual = gib
	for name, test := range map[string]struct {
		v    ledger.VolumeObject
		want ledger.Reason
	}{
		"a volume to be made":      {volume("c", "n1", "vg0", 2*gib, ledger.Pending), ledger.NoRoom},
		"a volume to be grown":     {growing, ledger.NoRoom},
		"a volume that has it all": {whole, ledger.Fits},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib, "fast", "careful")))
			c.class(ledger.Class{Name: "careful", Spare: 3 * gib})
			test.v.Class = "careful"
			c.ObserveVolume(test.v)
			c.wantReason(c.fits("p", "n1", claimed("d", 6*gib)), test.want)
		})
	}
}
