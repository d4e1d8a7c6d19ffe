package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/ledger"
)

// wantRoom checks the room that the node has for the class fast.
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

// listed reports n1's volume group with inline volumes in its inventory, all of one
// size.
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

func TestAnInlineVolumeThatDoesNotFitBesideExistingVolumesIsNotCharged(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 9*gib, ledger.Ready))
	c.ObservePod(inlinePod("p", 2*gib))
	c.wantRoom("n1", gib)
}

func TestAnInlineVolumeInTheMakingIsChargedBeyondPromisedRoom(t *testing.T) {
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

func TestAnInlineVolumeThatItsNodeListsStaysChargedInAnOverfullPool(t *testing.T) {
	c := newCluster(t)
	c.ObservePod(inlinePod("p", 6*gib))
	c.report(listed(6*gib, "p"))
	c.ObserveVolume(volume("c", "n1", "vg0", 9*gib, ledger.Ready))
	c.report(listed(6*gib, "p"))
	c.wantUsed("n1", "vg0", 15*gib)
}

func TestAnInlineVolumeMustFitBesideEveryKindOfExistingData(t *testing.T) {
	unknown, moved := volume("c", "n1", "vg0", 9*gib, ledger.Ready), volume("c", "n1", "vg0", 9*gib, ledger.Pending)
	unknown.Replicas[0].Actual, moved.Replicas[0].Actual = 0, 9*gib
	for name, v := range map[string]ledger.VolumeObject{
		"a replica of which its node does not say how large it is": unknown,
		"a replica that is there and not done with":                moved,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.ObserveVolume(v)
			c.ObservePod(inlinePod("p", 2*gib))
			c.wantUsed("n1", "vg0", 9*gib)
		})
	}
	c := newCluster(t, listed(6*gib, "q"))
	c.ObservePod(inlinePod("q", 6*gib)) // charged, and listed: it counts once
	c.ObserveVolume(volume("c", "n1", "vg0", 3*gib, ledger.Pending))
	c.ObservePod(inlinePod("p", 4*gib))
	c.wantUsed("n1", "vg0", 13*gib)
}

func TestAnInlineVolumeThatItsNodeListsNoMoreMayBeMadeAgainWhereItWas(t *testing.T) {
	made, larger := listed(6*gib, "p").Pools[0], volumeGroup("vg1", 20*gib)
	c := newCluster(t, report("n1", made, larger))
	c.ObservePod(inlinePod("p", 6*gib))
	c.wantUsed("n1", "vg0", 6*gib)
	c.report(report("n1", volumeGroup("vg0", 10*gib), larger))
	c.wantUsed("n1", "vg0", 6*gib)
	c.wantUsed("n1", "vg1", 0)
}

func TestAnInlineVolumeThatCannotBeMadeWhereItWasHeldIsHeldWhereItCan(t *testing.T) {
	both := report("n1", volumeGroup("vg0", 10*gib), volumeGroup("vg1", 4*gib))
	c := newCluster(t, both)
	c.ObservePod(inlinePod("p", 2*gib))
	c.wantUsed("n1", "vg0", 2*gib)
	c.ObserveVolume(volume("c", "n1", "vg0", 9*gib, ledger.Ready))
	c.report(both)
	c.wantUsed("n1", "vg0", 9*gib)
	c.wantUsed("n1", "vg1", 2*gib)
}

func TestTheHoldOfAPodInFlightForAnInlineVolumeIsNotGivenUp(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib)), report("n2", volumeGroup("vg0", 10*gib)))
	c.ObservePod(inlinePod("p", 2*gib))
	c.reserve("p", "n1", inline("p", "v", 2*gib)) // its scheduler has not seen yet that it is bound
	c.reserve("p", "n2", inline("p", "v", 2*gib))
	c.ObserveVolume(volume("c", "n1", "vg0", 9*gib, ledger.Ready))
	c.report(listed(0))
	c.wantUsed("n1", "vg0", 11*gib)
	c.Unreserve("p", "n1")
	c.wantUsed("n1", "vg0", 9*gib)
	c.wantUsed("n2", "vg0", 2*gib)
}

func TestAnInlineVolumeGoesWhereThereIsMostRoomForItsClass(t *testing.T) {
	started := inlinePod("p", 3*gib)
	started.Started = true
	for name, test := range map[string]struct {
		pod   ledger.PodObject
		pools []ledger.Pool
		want  string
	}{
		"of pools that are all too small": {
			started, []ledger.Pool{volumeGroup("a", gib), volumeGroup("b", 2*gib), volumeGroup("c", gib), volumeGroup("d", 9*gib, "other")}, "b",
		},
		"of disks the smallest": {
			inlinePod("p", 3*gib), []ledger.Pool{disk("a", 8*gib, "", "fast"), disk("b", 4*gib, "", "fast"), disk("c", 6*gib, "", "fast")}, "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, report("n1", test.pools...))
			c.ObservePod(test.pod)
			for _, p := range c.Pools("n1") {
				if (p.Used > 0) != (p.Pool.Name == test.want) {
					t.Errorf("%d MiB of %s are in use; it is to go to %s", p.Used/mib, p.Pool.Name, test.want)
				}
			}
		})
	}
}

func TestAnInlineVolumeThatItsClassDoesNotAdmitIsNotCharged(t *testing.T) {
	c := newCluster(t)
	c.class(ledger.Class{Name: "fast", InlineNamespaces: []string{"others"}})
	c.ObservePod(inlinePod("p", 2*gib))
	c.wantUsed("n1", "vg0", 0)
}

func TestAnInlineVolumeIsGivenNoPlaceOnAPartialLedger(t *testing.T) {
	l := ledger.New()
	c := &cluster{l, t}
	c.class(ledger.Class{Name: "fast", InlineNamespaces: []string{"*"}})
	c.report(report("n1", volumeGroup("vg0", 10*gib), volumeGroup("vg1", 4*gib)))
	c.ObservePod(inlinePod("p", 2*gib))
	c.wantUsed("n1", "vg0", 0)
	c.ObserveVolume(volume("c", "n1", "vg0", 9*gib, ledger.Ready))
	l.SetSynced()
	c.wantUsed("n1", "vg0", 9*gib)
	c.wantUsed("n1", "vg1", 2*gib)
}

func TestOfThoseThatWaitForANodeInlineVolumesComeFirstAndThenClaimsInOrder(t *testing.T) {
	c := newCluster(t, report("n2"))
	waiting := claims(500, 6*gib, 0) // so many that the first one is not given room by chance
	for _, d := range waiting {
		c.ObserveClaim(ledger.ClaimObject{UID: d.Owner.ID, Class: "fast", Requested: d.Bytes, SelectedNode: "n1"})
	}
	c.ObservePod(inlinePod("p", 3*gib))
	c.report(report("n1", volumeGroup("vg0", 10*gib)))
	want := map[ledger.Owner]int64{waiting[0].Owner: 6 * gib, ledger.Inline("p", "v"): 3 * gib}
	if diff := cmp.Diff(want, c.charges("n1", "vg0")); diff != "" {
		t.Errorf("charged (-want +got):\n%s", diff)
	}
}

func TestTheInlineVolumesOfAnEvictedPodAreFreeThoughItsNodeListsThem(t *testing.T) {
	c := newCluster(t, listed(3*gib, "observed", "unknown", "stays"))
	c.ObservePod(inlinePod("observed", 3*gib))
	c.reserve("q", "n1", claimed("observed", gib/2)) // a claim with the name of the pod is not the pod's
	for evicted, free := range map[string]int64{"another": gib / 2, "observed": 7 * gib / 2, "unknown": 7 * gib / 2} {
		n := c.Node("n1").WithoutPods(evicted)
		c.wantReason(n.Fit(c.request("p", claimed("x", free))), ledger.Fits)
		c.wantReason(n.Fit(c.request("p", claimed("x", free+1))), ledger.NoRoom)
	}
}
