package replica

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

// somebodys is a node with data in vg0 that is unknown to an API server that was restored from
// an older backup.
func somebodys(t *testing.T, fs string) *node {
	t.Helper()
	n := newNode()
	n.disks.AddPool(memory.PoolConfig{PoolRef: provision.PoolRef{Type: "LVM", Name: "vg1"}, Total: 20 * gib})
	n.classes["fast"].Spec.LVM.VolumeGroups = []string{"vg0", "vg1"}
	n.restart()
	n.carve(t, fs)
	return n
}

// next is the next change in the cluster.
type next struct {
	change option
	stale  bool // the watch does not show it
}

func TestNoChangeOfTheClusterAfterAnOldBackupDestroysData(t *testing.T) {
	end := next{change: deleting}
	for name, tc := range map[string]struct {
		begins option
		then   []next
		entry  string // reason of the last entry; empty for none
		files  bool   // only for volumes with a filesystem
	}{
		"the backup places the volume in another pool, then the volume is deleted":         {begins: in("vg1"), then: []next{end}, entry: "Conflict"},
		"the backup places the volume in another pool, then on another node":               {begins: in("vg1"), then: []next{{change: on("n2")}}, entry: "Conflict"},
		"the backup places the volume in another pool, then on no node":                    {begins: in("vg1"), then: []next{{change: on()}}, entry: "Conflict"},
		"the backup places the volume on another node, then the volume is deleted":         {begins: on("n2"), then: []next{end}},
		"the backup places the volume in another pool, then the watch misses the deletion": {begins: in("vg1"), then: []next{{change: deleting, stale: true}}, entry: "Conflict"},
		"the backup reserves the same pool, then the volume is deleted":                    {begins: marked, then: []next{end}, entry: "Conflict"},
		"the backup reserves the same pool, then places the volume on no node":             {begins: marked, then: []next{{change: on()}}, entry: "Conflict"},
		"the backup reserves the same pool, then places the volume on another node":        {begins: marked, then: []next{{change: on("n2")}, end}, entry: "Conflict"},
		"the backup wants another size, then the volume is deleted":                        {begins: of("3Gi"), then: []next{end}, entry: "Conflict"},
		"the backup wants another filesystem, then the volume is deleted":                  {begins: func(v *v1alpha1.Volume) { v.Spec.FSType = v1alpha1.XFS }, then: []next{end}, entry: "Conflict", files: true},
		"the backup wants another source, then the volume is deleted":                      {begins: restored, then: []next{end}, entry: "Conflict"},
		"the volume is deleted before the node has reported":                               {begins: deleting, entry: "Conflict"},
		"the volume loses another node before this node has reported":                      {begins: on("n2"), then: []next{{change: on()}}},
	} {
		for kind, fs := range map[string]string{"a filesystem": "ext4", "a block volume": ""} {
			if fs == "" && tc.files {
				continue
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				n := somebodys(t, fs)
				begins := []option{tc.begins}
				if fs == "" {
					begins = append(begins, block)
				}
				n.put(volume(begins...))
				n.rest(t)
				for _, then := range tc.then {
					n.edit(then.change)
					if then.stale {
						_, _ = n.stepStale(t.Context())
					}
					n.rest(t)
					n.restart()
					n.rest(t)
				}
				if !n.has() || n.disks.Formats(id) > 1 {
					t.Errorf("the data is there: %v; formatted %d times", n.has(), n.disks.Formats(id))
				}
				if e := n.entry(t); (e != nil) != (tc.entry != "") || e != nil && e.Reason != tc.entry {
					t.Errorf("entry %+v, want reason %q", e, tc.entry)
				}
				if why := n.worker.Orphans.All()[id]; why.Reason != v1alpha1.OrphanNotPlaced {
					t.Errorf("it is no orphan: %+v", why)
				}
			})
		}
	}
}

// rest steps until there is nothing more to do for now.
func (n *node) rest(t *testing.T) {
	t.Helper()
	for range 10 {
		if result, err := n.step(t.Context()); err == nil && (result.IsZero() || result.RequeueAfter == worker.RefusedDelay) {
			return
		}
	}
	t.Fatal("the volume does not come to rest in 10 steps")
}

func TestABlockVolumeIsKnownToBeMadeByTheProcessThatMadeIt(t *testing.T) {
	n := newNode(volume(block, marked))
	reports := 0
	n.fail = func(effect string) error { // the first report is lost on its way
		if effect == "before report" {
			if reports++; reports == 1 {
				return errAway
			}
		}
		return nil
	}
	_, _ = n.step(t.Context())
	n.settle(t)
	if e := n.entry(t); !sameState(e, v1alpha1.ReplicaReady, v1alpha1.ReasonCarved) {
		t.Errorf("entry %+v: it is not known any more who made it", e)
	}
	n.edit(deleting)
	n.settle(t)
	if n.has() {
		t.Error("a reservation that nobody took is kept")
	}
}

func TestABlockVolumeWhoseMakerDiedIsUsedAndNotMadeAgain(t *testing.T) {
	c := &tally{counts: map[memory.Operation]int{}}
	n := newNode(volume(block, marked))
	n.carve(t, "")
	n.disturb = c
	n.restart()
	n.settle(t)
	if e := n.entry(t); !sameState(e, v1alpha1.ReplicaReady, v1alpha1.ReasonFound) {
		t.Errorf("entry %+v", e)
	}
	if got := c.take(); got[memory.Create] != 0 || len(n.formatted) > 0 {
		t.Errorf("operations %v, formatted %v", got, n.formatted)
	}
}

func TestAPoolThatIsNotThereIsNoProofThatTheDataIsGone(t *testing.T) {
	n := newNode(volume(saying(ready("1Gi", "1Gi")), deleting))
	n.disks.RemovePool(vg0)
	n.restart()
	result, err := n.step(t.Context())
	if e := n.entry(t); err != nil || result.RequeueAfter != worker.RefusedDelay || !sameState(e, v1alpha1.ReplicaFailed, v1alpha1.ReasonPoolMissing) {
		t.Fatalf("%v, %v, entry %+v", result, err, e)
	}

	t.Run("the pool comes back, and the deletion goes on", func(t *testing.T) {
		n := newNode(n.get())
		n.carve(t, "ext4")
		n.settle(t)
		if n.has() || !sameState(n.entry(t), v1alpha1.ReplicaGone, v1alpha1.ReasonRemoved) {
			t.Errorf("data is there: %v, entry %+v", n.has(), n.entry(t))
		}
	})
	t.Run("an administrator says that it is lost", func(t *testing.T) {
		n.waived = orphan.Lost{Name: id, Pool: "vg0", Deleted: metav1.Time{Time: n.get().DeletionTimestamp.Time}}
		n.settle(t)
		if e := n.entry(t); !sameState(e, v1alpha1.ReplicaGone, v1alpha1.ReasonRemoved) {
			t.Errorf("entry %+v", e)
		}
	})
}

func TestAReplicaThatWasNeverMadeIsRemovedWithoutItsPool(t *testing.T) {
	n := newNode(volume(saying(failed(v1alpha1.ReasonPoolMissing)), deleting))
	n.disks.RemovePool(vg0)
	n.settle(t)
	if e := n.entry(t); !sameState(e, v1alpha1.ReplicaGone, v1alpha1.ReasonRemoved) {
		t.Errorf("entry %+v", e)
	}
}

func TestAVolumeThatIsWantedIsNotLookedForAgainAndAgain(t *testing.T) {
	n := newNode(volume(saying(ready("1Gi", "1Gi"))))
	n.disks.RemovePool(vg0)
	n.settle(t) // the next report of the pools brings it back
	if e := n.entry(t); !sameState(e, v1alpha1.ReplicaFailed, v1alpha1.ReasonDeviceMissing) {
		t.Errorf("entry %+v", e)
	}
}
