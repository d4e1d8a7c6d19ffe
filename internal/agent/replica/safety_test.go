package replica

import (
	"context"
	"errors"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

func unlabelled(v *v1alpha1.Volume) { v.Labels = nil }

func TestDataIsRemovedOnlyOnTheWordOfTheLiveObject(t *testing.T) {
	tests := map[string]struct {
		live   *v1alpha1.Volume // on the API server; the watch shows no object
		fs     string           // of the data on the node
		kept   bool
		orphan bool
	}{
		"no object":                    {fs: "ext4", kept: true, orphan: true},
		"no object and a blank volume": {kept: true, orphan: true},
		"the object lost the label and wants the volume here":               {live: volume(unlabelled, saying(ready("1Gi", "1Gi"))), fs: "ext4", kept: true},
		"the object lost the label before the first report":                 {live: volume(unlabelled), kept: true},
		"the volume moved away after the first report":                      {live: volume(unlabelled, on("n2"), saying(ready("1Gi", "1Gi"))), fs: "ext4", kept: true, orphan: true},
		"the volume moved away after the first report and is being deleted": {live: volume(unlabelled, deleting, on("n2"), saying(ready("1Gi", "1Gi"))), fs: "ext4", kept: true, orphan: true},
		"a reservation moved away after the first report":                   {live: volume(unlabelled, marked, on("n2"), saying(ready("1Gi", "1Gi")))},
		"a blank volume moved away before the first report":                 {live: volume(unlabelled, on("n2"))},
		"an object from an old backup that names n2":                        {live: volume(unlabelled, on("n2")), fs: "ext4", kept: true, orphan: true},
		"an old backup of a block volume that names n2":                     {live: volume(unlabelled, block, on("n2")), kept: true, orphan: true},
		"the object is being deleted":                                       {live: volume(unlabelled, deleting, saying(ready("1Gi", "1Gi"))), fs: "ext4"},
		"the object is being deleted, and the watch is far behind":          {live: volume(deleting, saying(ready("1Gi", "1Gi"))), fs: "ext4"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode()
			n.carve(t, tc.fs)
			if tc.live != nil {
				n.put(tc.live)
			}
			if _, err := n.stepStale(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n.has() != tc.kept {
				t.Errorf("data kept: %v; want %v", n.has(), tc.kept)
			}
			if _, orphan := n.worker.Orphans.All()[id]; orphan != tc.orphan {
				t.Errorf("orphan: %v; want %v", orphan, tc.orphan)
			}
		})
	}
}

func TestNothingIsRemovedWhileTheAPIServerIsAway(t *testing.T) {
	n := newNode(volume(deleting, saying(ready("1Gi", "1Gi"))))
	n.carve(t, "ext4")
	away := errors.New("connection refused")
	n.fail = func(string) error { return away }
	if _, err := n.step(t.Context()); !errors.Is(err, away) {
		t.Errorf("error %v; want %v", err, away)
	}
	if !n.has() {
		t.Error("data was removed without asking")
	}
	n.fail = nil
	n.settle(t)
	if n.has() || !sameState(n.entry(t), v1alpha1.ReplicaGone, v1alpha1.ReasonRemoved) {
		t.Errorf("data: %v, entry %+v", n.has(), n.entry(t))
	}
}

func TestADeletionThatTheWatchInventedRemovesNothing(t *testing.T) {
	n := newNode(volume(deleting, saying(ready("1Gi", "1Gi"))))
	n.carve(t, "ext4")
	n.sync()
	n.edit(func(v *v1alpha1.Volume) { v.DeletionTimestamp = nil })
	if _, err := n.stepStale(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !n.has() {
		t.Error("data was removed on the word of the watch")
	}
}

// deaf is a provisioner that does not answer.
type deaf struct{}

func (deaf) Before(context.Context, memory.Operation, string) error { return provision.ErrUnavailable }
func (deaf) After(context.Context, memory.Operation, string) error  { return nil }

func TestAProvisionerThatCannotBeAskedIsNotOneThatHasNothing(t *testing.T) {
	n := newNode(volume(saying(ready("1Gi", "1Gi"))))
	n.disturb = deaf{}
	n.restart()
	if _, err := n.step(t.Context()); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("error %v; want a retry", err)
	}
	if !sameState(n.entry(t), v1alpha1.ReplicaReady, v1alpha1.ReasonCarved) {
		t.Errorf("entry %+v; want it untouched", n.entry(t))
	}
}
