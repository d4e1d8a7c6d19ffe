package replica

import (
	"errors"
	"testing"

	"berth.dev/berth/api/v1alpha1"
)

const another = "another.example.org"

// cloned makes a Volume a copy of the original volume.
func cloned(v *v1alpha1.Volume) { v.Spec.Source = &v1alpha1.VolumeSource{Volume: original} }

// sold gives the original volume, or its snapshot, to another driver.
func (n *node) sold(clone bool) {
	if clone {
		v := volume(func(v *v1alpha1.Volume) { v.Name, v.Spec.Driver = original, another })
		n.put(v)
		return
	}
	s := &v1alpha1.Snapshot{Spec: v1alpha1.SnapshotSpec{Driver: another}}
	s.Name = source
	n.snapshots = map[string]*v1alpha1.Snapshot{source: s}
}

func TestNoVolumeIsMadeFromTheDataOfAnotherDriver(t *testing.T) {
	for name, tc := range map[string]struct {
		change option
		clone  bool
	}{"a snapshot": {restored, false}, "a volume": {cloned, true}} {
		t.Run(name, func(t *testing.T) {
			n := newNode(volume(tc.change))
			n.snapshot(t, "theirs")
			n.sold(tc.clone)
			if _, err := n.step(t.Context()); err != nil {
				t.Error(err)
			}
			if n.has() || !sameState(n.entry(t), v1alpha1.ReplicaFailed, v1alpha1.ReasonInvalid) {
				t.Errorf("data: %v, entry %+v", n.has(), n.entry(t))
			}
		})
	}
}

func TestNoVolumeIsMadeFromOneOfSeveralCopies(t *testing.T) {
	n := newNode(volume(cloned))
	n.snapshot(t, "perhaps behind")
	n.put(volume(func(v *v1alpha1.Volume) {
		v.Name, v.Spec.Replication = original, v1alpha1.Replication{Kind: v1alpha1.ReplicationSnapshots, Factor: 2}
	}))
	if _, err := n.step(t.Context()); err != nil {
		t.Error(err)
	}
	if n.has() || !sameState(n.entry(t), v1alpha1.ReplicaFailed, v1alpha1.ReasonInvalid) {
		t.Errorf("data: %v, entry %+v", n.has(), n.entry(t))
	}
}

func TestNoCopyIsMadeWhileItIsNotKnownWhoseItsSourceIs(t *testing.T) {
	broken := errors.New("the API server does not answer")
	for name, change := range map[string]option{"a snapshot": restored, "a volume": cloned} {
		t.Run(name, func(t *testing.T) {
			n := newNode(volume(change))
			n.snapshot(t, "what was")
			n.fail = func(effect string) error {
				if effect == "before live read" || effect == "before snapshot read" {
					return broken
				}
				return nil
			}
			if _, err := n.step(t.Context()); !errors.Is(err, broken) || n.has() {
				t.Errorf("got %v; data: %v", err, n.has())
			}
			n.fail = nil
			n.settle(t)
			if !n.has() {
				t.Error("it is not made although the source is known now")
			}
		})
	}
}
