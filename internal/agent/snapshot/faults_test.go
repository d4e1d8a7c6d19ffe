package snapshot

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/provision"
)

var errBroken = errors.New("something is broken")

// blind is an API server whose watch cannot be read.
type blind struct{ Objects }

func (blind) Watched(context.Context, string) (*v1alpha1.Snapshot, error) { return nil, errBroken }

// stuck are locks that are never free.
type stuck struct{}

func (stuck) Lock(context.Context, string) (func(), error) { return nil, errBroken }

// odd is a provisioner that returns another volume, or fails.
type odd struct {
	Provisioner
	volume func(*provision.Volume)
	err    error
}

func (o odd) Get(ctx context.Context, id string) (provision.Volume, error) {
	v, err := o.Provisioner.Get(ctx, id)
	if o.volume != nil {
		o.volume(&v)
	}
	return v, err
}

func (o odd) GetSnapshot(ctx context.Context, id string) (provision.Snapshot, error) {
	if o.err != nil {
		return provision.Snapshot{}, o.err
	}
	return o.Provisioner.GetSnapshot(ctx, id)
}

func TestNothingIsDeletedWhileAFactIsUnknown(t *testing.T) {
	for name, fault := range map[string]func(n *node){
		"the lock of the snapshot cannot be had": func(n *node) { n.worker.Locks = stuck{} },
		"the watch cannot be read":               func(n *node) { n.worker.Objects = blind{n.server} },
		"the provisioner does not answer":        func(n *node) { n.worker.Provisioner = odd{Provisioner: n.plain(), err: errBroken} },
		"the provisioner does not answer about a snapshot without the label": func(n *node) {
			n.edit(unlabelled)
			n.worker.Provisioner = odd{Provisioner: n.plain(), err: errBroken}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, object(saying(ready()), deleting))
			n.take()
			fault(n)
			if _, err := n.step(); !errors.Is(err, errBroken) || !n.has() || n.reports != 0 {
				t.Errorf("got %v; it is there: %v; %d reports", err, n.has(), n.reports)
			}
		})
	}
}

func TestNoSnapshotIsTakenOfAVolumeThatMayNotBeRead(t *testing.T) {
	for name, volume := range map[string]func(*provision.Volume){
		"an inline volume": func(v *provision.Volume) { v.Inline = provision.Inline{PodUID: "u", Name: "n"} },
		"an unfinished copy": func(v *provision.Volume) {
			v.Copying = true
		},
		"a volume in another pool": func(v *provision.Volume) { v.Pool.Name = "vg1" },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, object())
			n.worker.Provisioner = odd{Provisioner: n.plain(), volume: volume}
			_, _ = n.step()
			if n.has() {
				t.Error("it was taken")
			}
		})
	}
}

// A caller that deletes or expands the volume holds its lock.
func TestASnapshotWaitsForTheLockOfItsVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, object())
		unlock, err := n.locks.Lock(t.Context(), volume)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := n.step()
			ended <- err
		}()
		synctest.Wait()
		if n.has() {
			t.Error("it was taken while its volume is held")
		}
		unlock()
		if err := <-ended; err != nil || !n.has() {
			t.Errorf("%v; it was taken: %v", err, n.has())
		}
		unlock, err = n.locks.Lock(t.Context(), volume)
		if err != nil {
			t.Fatalf("its volume is still held: %v", err)
		}
		unlock()
	})
}

func TestASnapshotIsNotTakenIfItsVolumeCannotBeLocked(t *testing.T) {
	n := newNode(t, object())
	n.worker.Locks = onlyFor{n.locks}
	_, _ = n.step()
	if n.has() {
		t.Error("it was taken")
	}
}

// onlyFor grants locks of snapshots, and never those of volumes.
type onlyFor struct {
	snapshots interface {
		Lock(ctx context.Context, key string) (func(), error)
	}
}

func (o onlyFor) Lock(ctx context.Context, key string) (func(), error) {
	if key == volume {
		return nil, errBroken
	}
	return o.snapshots.Lock(ctx, key)
}

func TestASnapshotThatGoesIsToldOf(t *testing.T) {
	n := newNode(t, object(saying(ready()), deleting))
	n.take()
	told := ""
	n.worker.Deleted = func(id string) { told = id }
	n.settle()
	if n.has() || told != id {
		t.Errorf("it is there: %v; told of %q", n.has(), told)
	}
}

func TestASnapshotThatTheWatchedObjectDoesNotNameIsKept(t *testing.T) {
	n := newNode(t, object(on("n2")))
	n.take()
	n.settle()
	if !n.has() || n.worker.Orphans.All()[id].Reason != v1alpha1.OrphanNotPlaced {
		t.Errorf("it is there: %v; orphans %+v", n.has(), n.worker.Orphans.All())
	}
}

func TestASnapshotThatHasItsObjectAgainOrIsGoneIsNoOrphan(t *testing.T) {
	for name, prepare := range map[string]func(n *node){
		"the object of the snapshot is back": func(n *node) { n.edit(saying(took(v1alpha1.SnapshotCopying, v1alpha1.ReasonCopying))); n.take() },
		"the object of the snapshot is gone": func(n *node) { n.live = nil },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, object())
			prepare(n)
			n.worker.Orphans.Add(id, orphans.Orphan{Reason: v1alpha1.OrphanNoObject})
			n.settle()
			if got := n.worker.Orphans.All(); len(got) != 0 {
				t.Errorf("orphans %+v", got)
			}
		})
	}
}

func TestASnapshotOfAVolumeThatIsNotComingBackIsRefusedForGood(t *testing.T) {
	for name, test := range map[string]struct {
		volume *v1alpha1.Volume
		reason string
	}{
		"the volume does not exist":     {nil, v1alpha1.ReasonInvalid},
		"the volume is being deleted":   {&v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: moment}}, Spec: v1alpha1.VolumeSpec{Replicas: []v1alpha1.ReplicaSpec{{Node: here, Pool: "vg0"}}}}, v1alpha1.ReasonInvalid},
		"the volume is on another node": {&v1alpha1.Volume{Spec: v1alpha1.VolumeSpec{Replicas: []v1alpha1.ReplicaSpec{{Node: "n2", Pool: "vg0"}}}}, v1alpha1.ReasonInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, object())
			n.loseVolume()
			n.volume = test.volume
			if result, err := n.step(); err != nil || !result.IsZero() {
				t.Errorf("it is tried again: %+v, %v", result, err)
			}
			n.expect(v1alpha1.SnapshotFailed, test.reason)
		})
	}
}

// unreadable is an API server that does not answer for volumes.
type unreadable struct{ Objects }

func (unreadable) Volume(context.Context, string) (*v1alpha1.Volume, error) { return nil, errBroken }

func TestASnapshotIsNotRefusedForGoodWhileItsVolumeCannotBeRead(t *testing.T) {
	n := newNode(t, object())
	n.loseVolume()
	n.worker.Objects = unreadable{n.server}
	result, err := n.step()
	if err == nil && result.IsZero() {
		t.Error("it is not tried again")
	}
}

func TestASnapshotThatIsGoneAMomentLaterIsNotLookedFor(t *testing.T) {
	n := newNode(t, object(saying(ready()), deleting, unlabelled))
	n.worker.Listed = func(string) bool { return true } // a moment ago
	if result, err := n.step(); err != nil || !result.IsZero() || n.reports != 0 {
		t.Errorf("%+v, %v, %d reports", result, err, n.reports)
	}
}
