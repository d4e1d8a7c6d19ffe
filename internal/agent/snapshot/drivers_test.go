package snapshot

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
)

// foreign is an API server that has another driver's volumes only.
type foreign struct{ Objects }

func (foreign) Volume(_ context.Context, name string) (*v1alpha1.Volume, error) {
	return nil, fmt.Errorf("%w: %s", driver.ErrForeign, name)
}

func TestNoSnapshotIsTakenOfTheVolumeOfAnotherDriver(t *testing.T) {
	n := newNode(t, object())
	n.worker.Objects = foreign{n.server}
	if result, err := n.step(); err != nil || !result.IsZero() || n.has() {
		t.Errorf("%+v, %v; taken: %v", result, err, n.has())
	}
	n.expect(v1alpha1.SnapshotFailed, v1alpha1.ReasonInvalid)
}

// several is an API server whose volumes have copies on several nodes.
type several struct{ Objects }

func (several) Volume(_ context.Context, name string) (*v1alpha1.Volume, error) {
	v := &v1alpha1.Volume{}
	v.Name, v.Spec.Replication.Kind = name, v1alpha1.ReplicationSnapshots
	return v, nil
}

func TestNoSnapshotIsTakenOfOneOfSeveralCopies(t *testing.T) {
	n := newNode(t, object())
	n.worker.Objects = several{n.server}
	if result, err := n.step(); err != nil || !result.IsZero() || n.has() {
		t.Errorf("%+v, %v; taken: %v", result, err, n.has())
	}
	n.expect(v1alpha1.SnapshotFailed, v1alpha1.ReasonInvalid)
}

func TestNoSnapshotIsTakenWhileItIsNotKnownWhoseVolumeItIs(t *testing.T) {
	n := newNode(t, object())
	n.worker.Objects = unreadable{n.server}
	if _, err := n.step(); !errors.Is(err, errBroken) || n.has() {
		t.Errorf("got %v; taken: %v", err, n.has())
	}
	n.worker.Objects = n.server
	if _, err := n.step(); err != nil || !n.has() {
		t.Errorf("got %v; taken: %v", err, n.has())
	}
}
