package ledger_test

import (
	"testing"

	"berth.dev/berth/internal/ledger"
)

// wish is a bound claim that asks for so much by now.
func wish(c *cluster, bytes int64) {
	c.ObserveClaim(ledger.ClaimObject{UID: "c", Class: "fast", Requested: bytes, SelectedNode: "n1", Bound: true})
}

// wantGranted asks up to which size the volume of c is charged on n1.
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

func TestAnExpansionNeverTakesWhatWasPromisedToAPod(t *testing.T) {
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

func TestWhatANodeSaysAReplicaTakesReplacesTheReckoning(t *testing.T) {
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

func TestAVolumeWithoutReplicasIsGrantedNothingMore(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Gone))
	wish(c, 6*gib)
	c.wantGranted(0)
}
