package snapshot

import (
	"context"
	"errors"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

func TestASnapshotIsTakenAndReportedOnce(t *testing.T) {
	n := newNode(t, object())
	n.settle()
	n.settle()
	n.expect(v1alpha1.SnapshotReady, v1alpha1.ReasonTaken)
	if !n.has() || n.reports != 1 {
		t.Errorf("taken: %v, %d reports; want 1", n.has(), n.reports)
	}
}

func TestALostSnapshotIsNotTakenAgainAfterARestartEither(t *testing.T) {
	n := newNode(t, object())
	n.settle()
	n.lose()
	for range 2 {
		n.settle()
		n.expect(v1alpha1.SnapshotFailed, v1alpha1.ReasonDeviceMissing)
		if n.has() {
			t.Fatal("it was taken again, of other data")
		}
		n.restart()
	}
}

func TestAnAdoptedSnapshotIsFoundAndNeverTaken(t *testing.T) {
	n := newNode(t, object(adopted))
	for range 2 {
		n.settle()
		n.expect(v1alpha1.SnapshotFailed, v1alpha1.ReasonDeviceMissing)
		if n.has() {
			t.Fatal("it was taken, of what the volume holds now")
		}
		n.restart()
	}
	n.take() // its disk is back
	n.settle()
	n.expect(v1alpha1.SnapshotReady, v1alpha1.ReasonTaken)
}

func TestASnapshotThatFindsNoRoomWaits(t *testing.T) {
	n := newNode(t, object())
	if err := n.disks.PutForeign(vg0, "root", 9*gib); err != nil {
		t.Fatal(err)
	}
	if result, err := n.step(); err != nil || result.RequeueAfter != worker.RefusedDelay || n.refused != 1 {
		t.Errorf("result %v, %v, told %d times; want a slow retry", result, err, n.refused)
	}
	n.expect(v1alpha1.SnapshotFailed, v1alpha1.ReasonNoSpace)
	n.disks.RemoveForeign(vg0, "root")
	n.settle()
	n.expect(v1alpha1.SnapshotReady, v1alpha1.ReasonTaken)
}

func TestASnapshotThatCannotBeTakenReportsItsReason(t *testing.T) {
	tests := map[string]struct {
		prepare func(*node)
		reason  string
		retried bool // soon
	}{
		"the volume is not on the node yet": {func(n *node) { n.loseVolume() }, v1alpha1.ReasonSourceMissing, true},
		"the volume does not exist":         {func(n *node) { n.loseVolume(); n.volume = nil }, v1alpha1.ReasonInvalid, false},
		"the volume moved away":             {func(n *node) { n.loseVolume(); n.volume.Spec.Replicas = nil }, v1alpha1.ReasonInvalid, false},
		"the volume is in another pool": {func(n *node) {
			n.edit(func(s *v1alpha1.Snapshot) { s.Spec.Replicas[0].Pool = "vg1" })
		}, v1alpha1.ReasonInvalid, false},
		"the class does not exist":     {func(n *node) { n.class = nil }, v1alpha1.ReasonPoolMissing, false},
		"the class names another pool": {func(n *node) { n.class.Spec.LVM.VolumeGroups = []string{"vg1"} }, v1alpha1.ReasonPoolMissing, false},
		"the pool has no snapshots":    {func(n *node) { n.disturb = failing{provision.ErrUnsupported}; n.restart() }, v1alpha1.ReasonUnsupported, false},
		"poold does not answer":        {func(n *node) { n.disturb = failing{provision.ErrUnavailable}; n.restart() }, v1alpha1.ReasonProvisionerError, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, object())
			tc.prepare(n)
			if _, err := n.step(); (err != nil) != tc.retried {
				t.Errorf("error %v; want a retry: %v", err, tc.retried)
			}
			n.expect(v1alpha1.SnapshotFailed, tc.reason)
			if n.has() || n.live.Entry(here).Taken != nil {
				t.Error("it was taken")
			}
		})
	}
}

func TestARefusalForGoodIsNotTriedAgain(t *testing.T) {
	n := newNode(t, object())
	n.disturb = failing{provision.ErrUnsupported}
	n.restart()
	n.settle()
	n.disturb = nil
	n.restart()
	n.settle()
	n.expect(v1alpha1.SnapshotFailed, v1alpha1.ReasonUnsupported)
	if n.has() {
		t.Error("it was taken later, when nobody waited for it any more")
	}
}

func TestASnapshotOfALifeBeforeIsFoundWithoutItsVolume(t *testing.T) {
	n := newNode(t, object())
	n.take()
	n.loseVolume()
	n.volume = nil
	n.settle()
	n.expect(v1alpha1.SnapshotReady, v1alpha1.ReasonTaken)
}

func TestNoSnapshotIsTakenWhileItsVolumeIsWorkedOn(t *testing.T) {
	n := newNode(t, object())
	unlock, err := n.locks.Lock(t.Context(), volume)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := n.worker.Make(ctx, n.live, decide.Take, nil)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || n.has() {
		t.Errorf("error %v, taken %v; want it to wait", err, n.has())
	}
	unlock()
	n.settle()
	n.expect(v1alpha1.SnapshotReady, v1alpha1.ReasonTaken)
}

func TestASnapshotThatIsBeingCopiedFromStaysUntilThatIsDone(t *testing.T) {
	n := newNode(t, object())
	n.settle()
	n.disturb = failing{provision.ErrInUse}
	n.restart()
	n.edit(deleting)
	if _, err := n.step(); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("error %v; want %v and a retry", err, provision.ErrInUse)
	}
	n.expect(v1alpha1.SnapshotFailed, v1alpha1.ReasonInUse)
	if !n.has() || n.live.Entry(here).Taken == nil {
		t.Errorf("kept %v, entry %+v", n.has(), n.live.Entry(here))
	}
	n.disturb = nil
	n.restart()
	n.settle()
	n.expect(v1alpha1.SnapshotGone, v1alpha1.ReasonRemoved)
}

func TestRemovalIsOnlyOnTheWordOfTheLiveObject(t *testing.T) {
	tests := map[string]struct {
		live         *v1alpha1.Snapshot // the watch shows no object
		kept, orphan bool
	}{
		"no object":                                            {kept: true, orphan: true},
		"the object lost the label":                            {live: object(unlabelled, saying(ready())), kept: true},
		"an object from an old backup":                         {live: object(unlabelled, on("n2")), kept: true, orphan: true},
		"the object places the snapshot on another node":       {live: object(unlabelled, on("n2"), saying(ready()))},
		"the object is being deleted":                          {live: object(unlabelled, deleting, saying(ready()))},
		"the object is being deleted, and the watch is behind": {live: object(deleting, saying(ready()))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, nil)
			n.take()
			n.live = tc.live
			if _, err := n.stepStale(); err != nil {
				t.Fatal(err)
			}
			if _, orphan := n.worker.Orphans.All()[id]; n.has() != tc.kept || orphan != tc.orphan {
				t.Errorf("kept %v, orphan %v; want %v, %v", n.has(), orphan, tc.kept, tc.orphan)
			}
		})
	}
}

func TestADeletionThatTheWatchInventedRemovesNothing(t *testing.T) {
	n := newNode(t, object(deleting, saying(ready())))
	n.take()
	n.edit(func(s *v1alpha1.Snapshot) { s.DeletionTimestamp = nil })
	if _, err := n.stepStale(); err != nil {
		t.Fatal(err)
	}
	if !n.has() {
		t.Error("it was removed on the word of the watch")
	}
}

// failing fails every change of a snapshot.
type failing struct{ err error }

func (f failing) Before(_ context.Context, op memory.Operation, _ string) error {
	if op == memory.Snapshot || op == memory.DeleteSnapshot {
		return f.err
	}
	return nil
}

func (failing) After(context.Context, memory.Operation, string) error { return nil }

func TestAPoolThatIsNotThereIsNoProofThatTheSnapshotIsGone(t *testing.T) {
	n := newNode(t, object(saying(ready()), deleting))
	n.disks.RemovePool(vg0)
	n.restart()
	result, err := n.step()
	if err != nil || result.RequeueAfter != worker.RefusedDelay {
		t.Errorf("%v, %v", result, err)
	}
	n.expect(v1alpha1.SnapshotFailed, v1alpha1.ReasonPoolMissing)
	n.waived = orphan.Lost{Name: id, Pool: vg0.Name, Deleted: *n.live.DeletionTimestamp}
	n.settle()
	n.expect(v1alpha1.SnapshotGone, v1alpha1.ReasonRemoved)
}
