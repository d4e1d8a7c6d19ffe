package ledger_test

import (
	"testing"

	"berth.dev/berth/internal/ledger"
)

// wantRoom asks what the node has for the class fast.
func (c *cluster) wantRoom(node string, want int64) {
	c.t.Helper()
	if room := c.Room(node, "fast"); room.Largest != want {
		c.t.Errorf("node %s has room for %d MiB, want %d MiB", node, room.Largest/mib, want/mib)
	}
}

// inlinePod is bound to n1 and has one inline volume.
func inlinePod(uid string, bytes int64) ledger.PodObject {
	return boundPod(uid, "n1", ledger.InlineVolume{Name: "v", Class: "fast", Bytes: bytes})
}

// listed is n1's volume group when it lists inline volumes, all as large.
func listed(taken int64, pods ...string) ledger.Report {
	pool := volumeGroup("vg0", 10*gib)
	for _, uid := range pods {
		pool.Inventory = append(pool.Inventory, ledger.Item{Owner: ledger.Inline(uid, "v"), Taken: taken})
	}
	return report("n1", pool)
}

func TestAnInlineVolumeThatNoPoolCanHoldClosesNoNode(t *testing.T) {
	c := newCluster(t)
	c.ObservePod(inlinePod("greedy", 1<<60))
	c.wantRoom("n1", 10*gib)
	c.wantReason(c.fits("web", "n1", claimed("a", 10*gib)), ledger.Fits)
	c.ObserveVolume(volume("b", "n1", "vg0", gib, ledger.Ready))
	if o := c.Grant("pvc-b", 2*gib); o.Reason != ledger.Fits {
		t.Errorf("growing is refused: %+v", o)
	}
}

func TestAnInlineVolumeThatDoesNotFitBesideWhatIsThereIsNotCharged(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 9*gib, ledger.Ready))
	c.ObservePod(inlinePod("p", 2*gib))
	c.wantRoom("n1", gib)
}

func TestAnInlineVolumeThatItsNodeMayBeMakingIsChargedBeyondWhatWasPromised(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 9*gib, ledger.Pending)) // promised, and not carved yet
	c.ObservePod(inlinePod("p", 2*gib))
	c.wantUsed("n1", "vg0", 11*gib)
	c.wantRoom("n1", 0)
	c.ObserveVolume(volume("c", "n1", "vg0", 9*gib, ledger.Ready)) // the promise was kept first
	c.report(listed(0))
	c.wantUsed("n1", "vg0", 9*gib)
}

func TestOfManyInlineVolumesThatCannotAllBeMadeThoseThatAreNotMadeAreGivenUp(t *testing.T) {
	c := newCluster(t)
	for _, uid := range []string{"p", "q", "r"} {
		c.ObservePod(inlinePod(uid, 8*gib)) // the node may be making any of them
	}
	c.report(listed(8*gib, "q"))
	c.wantUsed("n1", "vg0", 8*gib)
	c.wantRoom("n1", 2*gib)
}

func TestAnInlineVolumeIsChargedOnceThereIsRoomForIt(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 9*gib, ledger.Ready))
	c.ObservePod(inlinePod("p", 2*gib))
	c.ObserveVolumeGone("pvc-c", 0)
	c.report(listed(0))
	c.wantUsed("n1", "vg0", 2*gib)
}

func TestAnInlineVolumeOfAPodThatHasStartedIsChargedInAnyCase(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 9*gib, ledger.Ready))
	pod := inlinePod("p", 2*gib)
	pod.Started = true
	c.ObservePod(pod)
	c.wantUsed("n1", "vg0", 11*gib)
	c.report(listed(0))
	c.wantUsed("n1", "vg0", 11*gib)
}

func TestAnInlineVolumeThatItsNodeListsStaysChargedWhateverElseIsThere(t *testing.T) {
	c := newCluster(t)
	c.ObservePod(inlinePod("p", 6*gib))
	c.report(listed(6*gib, "p"))
	c.ObserveVolume(volume("c", "n1", "vg0", 9*gib, ledger.Ready))
	c.report(listed(6*gib, "p"))
	c.wantUsed("n1", "vg0", 15*gib)
}
