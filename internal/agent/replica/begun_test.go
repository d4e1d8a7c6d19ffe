package replica

import (
	"context"
	"errors"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

// faulty is a provisioner with one operation that fails, before or after it has an effect.
type faulty struct {
	op            memory.Operation
	before, after error
}

func (f faulty) Before(_ context.Context, op memory.Operation, _ string) error {
	if op == f.op {
		return f.before
	}
	return nil
}

func (f faulty) After(_ context.Context, op memory.Operation, _ string) error {
	if op == f.op {
		return f.after
	}
	return nil
}

// begun is a node that began to make a reserved block volume, and found no room for it.
func begun(t *testing.T) *node {
	t.Helper()
	n := newNode(volume(block, marked))
	if err := n.disks.PutForeign(vg0, "root", 10*gib); err != nil {
		t.Fatal(err)
	}
	if _, err := n.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.disks.RemoveForeign(vg0, "root")
	return n
}

// That the worker began a volume counts no more once the object says that the data is there,
// or is gone: an old backup may bring the object back as it was before.
func TestAVolumeOfThisProcessIsKeptOnceItsObjectComesFromAnOldBackup(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(t *testing.T) *node
		backup option
	}{
		"the node reported the volume": {before: func(t *testing.T) *node {
			n := newNode(volume(block, marked))
			_, _ = n.step(t.Context())
			return n
		}},
		"the node reported the volume, and the answer was lost": {before: func(t *testing.T) *node {
			n := newNode(volume(block, marked))
			n.fail = func(effect string) error {
				if effect == "after report" {
					return errAway
				}
				return nil
			}
			_, _ = n.step(t.Context())
			_, _ = n.step(t.Context())
			n.fail = nil
			return n
		}},
		"the volume was deleted": {before: func(t *testing.T) *node {
			n := begun(t)
			n.edit(deleting)
			_, _ = n.step(t.Context())
			return n
		}},
		"the object of the volume was gone": {before: func(t *testing.T) *node {
			n := begun(t)
			n.drop()
			_, _ = n.step(t.Context())
			return n
		}},
		"another object had the name of the volume": {before: begun, backup: func(v *v1alpha1.Volume) { v.UID = "another" }},
	} {
		t.Run(name, func(t *testing.T) {
			n := tc.before(t)
			if !n.has() { // as if another process had made it after the backup
				n.carve(t, "")
			}
			backup := volume(block, marked)
			if tc.backup != nil {
				tc.backup(backup)
			}
			n.put(backup)
			n.settle(t)
			if e := n.entry(t); !sameState(e, v1alpha1.ReplicaReady, v1alpha1.ReasonFound) {
				t.Errorf("entry %+v", e)
			}
			n.edit(deleting)
			n.settle(t)
			if !n.has() {
				t.Error("the data is gone")
			}
		})
	}
}

func TestABlockVolumeWhoseMakingWasNotAnsweredIsKnownToBeMade(t *testing.T) {
	n := newNode(volume(block, marked))
	n.worker.Provisioner = memory.New(n.disks, faulty{op: memory.Create, after: provision.ErrUnavailable})
	if _, err := n.step(t.Context()); !errors.Is(err, provision.ErrUnavailable) || !n.has() {
		t.Fatalf("%v; it is there: %v", err, n.has())
	}
	n.worker.Provisioner = memory.New(n.disks, nil)
	n.settle(t)
	if e := n.entry(t); !sameState(e, v1alpha1.ReplicaReady, v1alpha1.ReasonCarved) {
		t.Errorf("entry %+v", e)
	}
	n.edit(deleting)
	n.settle(t)
	if n.has() {
		t.Error("a reservation that nobody took is kept")
	}
}

func TestABlockVolumeIsNotTakenForMadeWhileItCannotBeLookedUp(t *testing.T) {
	n := newNode(volume(block, marked))
	n.carve(t, "")
	n.worker.Provisioner = memory.New(n.disks, faulty{op: memory.Get, before: provision.ErrUnavailable})
	if _, err := n.step(t.Context()); !errors.Is(err, provision.ErrUnavailable) || n.entry(t) != nil {
		t.Errorf("%v, entry %+v", err, n.entry(t))
	}
	n.worker.Provisioner = memory.New(n.disks, nil)
	n.settle(t)
	if e := n.entry(t); !sameState(e, v1alpha1.ReplicaReady, v1alpha1.ReasonFound) {
		t.Errorf("entry %+v", e)
	}
}
