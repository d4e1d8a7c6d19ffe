package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/uuid"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
	"berth.dev/berth/internal/usecase/snapshots"
)

func snapshotOf(volume string) snapshots.Request {
	return snapshots.Request{Name: "snapshot-" + string(uuid.NewUUID()), Volume: volume}
}

func mustTake(t testing.TB, p *controllertest.Process, r snapshots.Request) snapshots.Snapshot {
	t.Helper()
	s, err := p.Snapshots.Create(within(t), r)
	if err != nil {
		t.Fatalf("taking a snapshot: %v", err)
	}
	return s
}

func noSnapshot(s *v1alpha1.Snapshot) error {
	if s != nil {
		return fmt.Errorf("it still exists: finalizers %v, status %+v", s.Finalizers, s.Status)
	}
	return nil
}

func TestASnapshotIsTakenWhereItsVolumeIsAndOutlivesIt(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	v := mustCreate(t, p, c.request(n))
	r := snapshotOf(v.ID)

	s := mustTake(t, p, r)

	if s.ID != v1alpha1.SnapshotName(r.Name) || s.Volume != v.ID || s.Size != gi || s.Taken.IsZero() || !s.Ready {
		t.Errorf("got %+v", s)
	}
	if again := mustTake(t, p, r); again != s {
		t.Errorf("asked again: %+v, before %+v", again, s)
	}
	mustDelete(t, p, v.ID)
	if got, err := p.Snapshots.Get(within(t), s.ID); err != nil || got != s {
		t.Errorf("after its volume: %+v, %v", got, err)
	}
	for range 2 {
		if err := p.Snapshots.Delete(within(t), s.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, taken := n.Taken(s.ID); taken || controllertest.Snapshot(t, c.Environment, s.ID) != nil {
		t.Error("something of the snapshot is left")
	}
}

func TestASnapshotIsReturnedOnceTakenAndReadyOnceCopied(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	v := mustCreate(t, p, c.request(n))
	r := snapshotOf(v.ID)
	id := v1alpha1.SnapshotName(r.Name)
	n.SetCopying(id, true)
	if s := mustTake(t, p, r); s.Ready {
		t.Error("it is ready while it is copied")
	}
	wantCopy := c.request(n)
	wantCopy.Source = &v1alpha1.VolumeSource{Snapshot: id}
	_, err := p.Volumes.Create(within(t), wantCopy)
	wantError(t, err, provision.ErrUnavailable, "not ready")

	n.SetCopying(id, false)
	controllertest.EventuallySnapshot(t, c.Environment, id, func(*v1alpha1.Snapshot) error {
		if s := mustTake(t, p, r); !s.Ready {
			return errors.New("it is not ready")
		}
		return nil
	})
}

func TestASnapshotThatANodeRefusesLeavesNoObject(t *testing.T) {
	tests := map[string]struct {
		reason string
		class  error
		stays  bool
	}{
		"no room":                              {v1alpha1.ReasonNoSpace, provision.ErrNoSpace, false},
		"a provisioner without snapshots":      {v1alpha1.ReasonUnsupported, provision.ErrUnsupported, false},
		"a wish that cannot be met":            {v1alpha1.ReasonInvalid, provision.ErrInvalid, false},
		"other data of the same name":          {v1alpha1.ReasonConflict, provision.ErrConflict, false},
		"a provisioner that fails tries again": {v1alpha1.ReasonProvisionerError, provision.ErrUnavailable, true},
	}
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	v := mustCreate(t, p, c.request(n))
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := snapshotOf(v.ID)
			id := v1alpha1.SnapshotName(r.Name)
			n.SetFailure(test.reason, "because")
			_, err := p.Snapshots.Create(within(t), r)
			n.SetFailure("", "")
			wantError(t, err, test.class, "node "+n.Name+": because")
			if left := controllertest.Snapshot(t, c.Environment, id); (left != nil) != test.stays {
				t.Errorf("left is %+v", left)
			}
			controllertest.EventuallySnapshot(t, c.Environment, id, func(*v1alpha1.Snapshot) error {
				_, err := p.Snapshots.Create(within(t), r)
				return err
			})
		})
	}
}

func TestNoSnapshotIsBegunOfAMissingOrUnfinishedVolume(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	waits := c.request(n)
	n.SetMute(waits.Name, true)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := p.Volumes.Create(ctx, waits); ended <- err }()
	controllertest.Eventually(t, c.Environment, waits.Name, placedOn(n))
	cancel()
	if err := <-ended; err == nil {
		t.Fatal("a volume was made by a node that does not answer")
	}
	leaving := mustCreate(t, p, c.request(n))
	n.SetInUse(leaving.ID, true)
	wantError(t, p.Volumes.Delete(within(t), leaving.ID), provision.ErrInUse)
	tests := map[string]struct {
		volume string
		class  error
	}{
		"a volume that does not exist":    {"pvc-00000000-0000-0000-0000-000000000000", provision.ErrNotFound},
		"no id of a volume":               {"../x", provision.ErrNotFound},
		"a volume that is being deleted":  {leaving.ID, provision.ErrNotFound},
		"a volume that is not carved yet": {waits.Name, provision.ErrUnavailable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := snapshotOf(test.volume)
			_, err := p.Snapshots.Create(within(t), r)
			wantError(t, err, test.class, test.volume)
			if left := controllertest.Snapshot(t, c.Environment, v1alpha1.SnapshotName(r.Name)); left != nil {
				t.Errorf("a Snapshot was made: %+v", left.Spec)
			}
		})
	}
	n.SetInUse(leaving.ID, false)
}

func TestTheSameSnapshotNameForAnotherVolumeIsAConflict(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	a, b := mustCreate(t, p, c.request(n)), mustCreate(t, p, c.request(n))
	r := snapshotOf(a.ID)
	mustTake(t, p, r)
	r.Volume = b.ID
	_, err := p.Snapshots.Create(within(t), r)
	wantError(t, err, provision.ErrConflict, "is of volume "+a.ID+", not "+b.ID)
}

func TestASnapshotIsTakenAcrossARestartAndASecondCallIsBusy(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	r := snapshotOf("")
	id := v1alpha1.SnapshotName(r.Name)
	written, told := making(id)
	p := controllertest.Start(t, c.Environment, told)
	r.Volume = mustCreate(t, p, c.request(n)).ID
	n.SetMute(id, true)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { _, err := p.Snapshots.Create(ctx, r); first <- err }()
	select {
	case <-written:
	case err := <-first:
		t.Fatalf("the first call has ended: %v", err)
	}
	_, err := p.Snapshots.Create(within(t), r)
	wantError(t, err, usecase.ErrBusy)
	wantError(t, p.Snapshots.Delete(within(t), id), usecase.ErrBusy)
	cancel()
	wantError(t, <-first, context.Canceled, "waiting for node "+n.Name)
	p.Stop(t)

	next := controllertest.Start(t, c.Environment)
	if page, _, err := next.Snapshots.List(within(t), r.Volume, "", 0); err != nil || len(page) != 0 {
		t.Errorf("what was not taken is listed: %v, %v", page, err)
	}
	n.SetMute(id, false)
	mustTake(t, next, r)
}

func TestASnapshotInUseStaysUntilItIsNot(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	s := mustTake(t, p, snapshotOf(mustCreate(t, p, c.request(n)).ID))
	n.SetBusy(s.ID, true)
	wantError(t, p.Snapshots.Delete(within(t), s.ID), provision.ErrInUse, "a volume is being made from it")
	n.SetBusy(s.ID, false)
	controllertest.EventuallySnapshot(t, c.Environment, s.ID, noSnapshot)
}

func TestSnapshotsAreListedByVolumeAndPageByPage(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	a, b := mustCreate(t, p, c.request(n)), mustCreate(t, p, c.request(n))
	mustTake(t, p, snapshotOf(b.ID))
	want := map[string]bool{}
	for range 3 {
		want[mustTake(t, p, snapshotOf(a.ID)).ID] = true
	}
	await(t, "the cache to have seen all", func() bool {
		page, _, err := p.Snapshots.List(within(t), a.ID, "", 0)
		return err == nil && len(page) == len(want)
	})
	token := ""
	for page := 0; page == 0 || token != ""; page++ {
		list, next, err := p.Snapshots.List(within(t), a.ID, token, 2)
		if err != nil || len(list) > 2 {
			t.Fatalf("%v, %v", list, err)
		}
		for _, s := range list {
			if !want[s.ID] {
				t.Errorf("snapshot %s of volume %s is listed, or again", s.ID, s.Volume)
			}
			delete(want, s.ID)
		}
		token = next
	}
	if len(want) > 0 {
		t.Errorf("never listed: %v", want)
	}
	_, _, err := p.Snapshots.List(within(t), "", "x", 0)
	wantError(t, err, usecase.ErrBadToken)
}

func TestLostLabelsAndFinalizersOfASnapshotComeBack(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	id := mustTake(t, p, snapshotOf(mustCreate(t, p, c.request(n)).ID)).ID
	stripped := controllertest.Snapshot(t, c.Environment, id)
	stripped.Labels, stripped.Finalizers = nil, nil
	if err := c.Client.Update(t.Context(), stripped); err != nil {
		t.Fatal(err)
	}
	controllertest.EventuallySnapshot(t, c.Environment, id, func(s *v1alpha1.Snapshot) error {
		if _, labelled := s.Labels[v1alpha1.ReplicaLabel(n.Name)]; !labelled || len(s.Finalizers) != 1 {
			return fmt.Errorf("labels %v, finalizers %v", s.Labels, s.Finalizers)
		}
		return nil
	})
}
