package replica

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/publish/staging"
)

var errBroken = errors.New("something is broken")

// blind is an API server whose watch cannot be read.
type blind struct{ Objects }

func (blind) Watched(context.Context, string) (*v1alpha1.Volume, error) { return nil, errBroken }

func TestNothingIsDeletedWhileAFactIsUnknown(t *testing.T) {
	removed := volume(on(here), saying(ready("1Gi", "1Gi")), deleting)
	for name, test := range map[string]struct {
		volume *v1alpha1.Volume
		fault  func(n *node)
		want   error
	}{
		"the lock of the volume cannot be had": {removed, func(n *node) {
			n.worker.Locks = taken{}
		}, errBroken},
		"the watch cannot be read":                {removed, func(n *node) { n.worker.Objects = blind{n.server} }, errBroken},
		"the mounts of the volume cannot be read": {removed, func(n *node) { n.worker.Mounts = func(provision.Volume) ([]string, error) { return nil, errBroken } }, errBroken},
		"the provisioner does not answer":         {removed, func(n *node) { n.worker.Provisioner = memory.New(n.disks, deaf{}) }, provision.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(test.volume)
			n.carve(t, "ext4")
			test.fault(n)
			_, err := n.step(t.Context())
			if reported := n.entry(t).Message; !errors.Is(err, test.want) && reported == "" {
				t.Errorf("got %v, and nothing is reported", err)
			}
			if !n.has() {
				t.Error("the data is gone")
			}
		})
	}
}

// taken are locks that are never free.
type taken struct{}

func (taken) Lock(context.Context, string) (func(), error) { return nil, errBroken }

func TestAVolumeWithoutADeviceIsRemoved(t *testing.T) {
	n := newNode(volume(on(here), saying(ready("1Gi", "1Gi")), deleting))
	n.carve(t, "ext4")
	told := ""
	n.worker.Mounts = func(provision.Volume) ([]string, error) { return nil, provision.ErrNotFound }
	n.worker.Deleted = func(id string) { told = id }
	n.settle(t)
	if n.has() || told != id {
		t.Errorf("it is there: %v; told of %q", n.has(), told)
	}
}

func TestAVolumeIsFormattedOnlyOnceItIsReported(t *testing.T) {
	n := newNode(volume(on(here)))
	n.fail = func(effect string) error {
		if effect == "before report" {
			return errBroken
		}
		return nil
	}
	if _, err := n.step(t.Context()); !errors.Is(err, errBroken) || len(n.formatted) != 0 {
		t.Errorf("got %v, formatted %v", err, n.formatted)
	}
}

// A replica that an earlier run made is larger than the spec says by now, or smaller.
func TestAReplicaOfAnEarlierRunWithAnotherSizeIsTakenOver(t *testing.T) {
	for _, want := range []string{"512Mi", "2Gi"} {
		n := newNode(volume(on(here), of(want)))
		n.carve(t, "")
		n.settle(t)
		if e := n.entry(t); e.State != v1alpha1.ReplicaReady || e.Capacity.Value() < gib {
			t.Errorf("%s: %+v", want, e)
		}
	}
}

func TestDataThatTheWatchedVolumeDoesNotNameIsKept(t *testing.T) {
	n := newNode(volume(on("n2"), labelledHere))
	n.carve(t, "ext4")
	n.settle(t)
	if !n.has() || n.worker.Orphans.All()[id].Reason != v1alpha1.OrphanNotPlaced {
		t.Errorf("it is there: %v; orphans %+v", n.has(), n.worker.Orphans.All())
	}
}

func labelledHere(v *v1alpha1.Volume) {
	v.Labels = map[string]string{v1alpha1.ReplicaLabel(here): ""}
}

func TestDataThatHasItsObjectAgainOrIsGoneIsNoOrphan(t *testing.T) {
	for name, prepare := range map[string]func(n *node){
		"the object of the data is back": func(n *node) { n.carve(t, "ext4"); n.edit(saying(ready("1Gi", "1Gi"))) },
		"the data is gone":               func(n *node) { n.drop() },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(volume(on(here)))
			prepare(n)
			n.worker.Orphans.Add(id, orphans.Orphan{Reason: v1alpha1.OrphanNoObject})
			n.settle(t)
			if got := n.worker.Orphans.All(); len(got) != 0 {
				t.Errorf("orphans %+v", got)
			}
		})
	}
}

// maker is a provisioner that makes filesystems, and fails a given number of times.
type maker struct {
	provision.Provisioner
	fails int
	as    error
	made  []string
}

func (m *maker) Format(_ context.Context, r provision.FormatRequest) (provision.Volume, error) {
	m.made = append(m.made, r.ID)
	if m.fails > 0 {
		m.fails--
		return provision.Volume{}, m.as
	}
	return provision.Volume{}, nil
}

func TestAFilesystemIsMadeUntilItIsThereOrCannotBe(t *testing.T) {
	for name, test := range map[string]struct {
		maker maker
		tries int
	}{
		"the filesystem is made at once":            {maker{}, 1},
		"a fault passes after two tries":            {maker{fails: 2, as: errBroken}, 3},
		"the volume of the filesystem is gone":      {maker{fails: 9, as: provision.ErrNotFound}, 1},
		"the volume has another filesystem already": {maker{fails: 9, as: provision.ErrConflict}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locks := &keyed.Locks[string]{}
				f := NewFormatter(&test.maker, staging.OneCopy{Locks: locks})
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- f.Start(ctx) }()
				unlock, err := locks.Lock(ctx, id) // as Stage does
				if err != nil {
					t.Fatal(err)
				}
				f.Enqueue(provision.FormatRequest{ID: id, Filesystem: "ext4"})
				synctest.Wait()
				if len(test.maker.made) != 0 {
					t.Error("it was made while the volume is staged")
				}
				unlock()
				<-time.After(time.Hour)
				synctest.Wait()
				if len(test.maker.made) != test.tries {
					t.Errorf("tried %d times, want %d", len(test.maker.made), test.tries)
				}
				unlock, err = locks.Lock(ctx, id)
				if err != nil {
					t.Fatalf("it is still locked: %v", err)
				}
				unlock()
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// elsewhere is the owner of volumes that are taken before they are written.
type elsewhere struct{}

func (elsewhere) Prepare(context.Context, string, func(context.Context) error) error { return nil }

func TestNoFilesystemIsMadeBeforeAVolumeIsTakenIfItsOwnerSaysSo(t *testing.T) {
	m := &maker{}
	if err := NewFormatter(m, elsewhere{}).format(t.Context(), provision.FormatRequest{ID: id}); err != nil || len(m.made) != 0 {
		t.Errorf("got %v, made %v", err, m.made)
	}
}

func TestAFilesystemThatCannotBeLockedIsNotMade(t *testing.T) {
	m := &maker{}
	if err := NewFormatter(m, staging.OneCopy{Locks: taken{}}).format(t.Context(), provision.FormatRequest{ID: id}); !errors.Is(err, errBroken) || len(m.made) != 0 {
		t.Errorf("got %v, made %v", err, m.made)
	}
}

// refusing is a provisioner whose Create returns ErrConflict and whose Get returns get.
type refusing struct {
	provision.Provisioner
	get error
}

func (refusing) Create(context.Context, provision.CreateRequest) (provision.Volume, error) {
	return provision.Volume{}, provision.ErrConflict
}

func (r refusing) Get(context.Context, string) (provision.Volume, error) {
	return provision.Volume{}, r.get
}

func TestAVolumeThatIsAnotherOneIsReportedThoughThereIsNoRecord(t *testing.T) {
	for _, get := range []error{provision.ErrNotFound, errBroken} {
		n := newNode(volume(on(here)))
		n.worker.Provisioner = refusing{n.worker.Provisioner, get}
		_, _ = n.step(t.Context())
		if e := n.entry(t); e == nil || e.Reason != v1alpha1.ReasonConflict {
			t.Errorf("%v: the entry is %+v", get, e)
		}
	}
}

func TestDataThatTheWatchDoesNotShowIsLookedUpBeforeAnything(t *testing.T) {
	n := newNode(volume(on(here), saying(ready("1Gi", "1Gi")), deleting, unlabelled))
	n.carve(t, "ext4")
	n.worker.Provisioner = memory.New(n.disks, deaf{})
	if _, err := n.step(t.Context()); !errors.Is(err, provision.ErrUnavailable) || !n.has() {
		t.Errorf("got %v; it is there: %v", err, n.has())
	}
	n = newNode(volume(on(here), saying(ready("1Gi", "1Gi")), deleting, unlabelled))
	n.worker.Listed = func(string) bool { return true } // a moment ago
	if result, err := n.step(t.Context()); err != nil || !result.IsZero() || n.reports != 0 {
		t.Errorf("%+v, %v, %d reports", result, err, n.reports)
	}
}

func TestDataThatIsThereAgainIsNotIgnored(t *testing.T) {
	n := newNode(volume(on(here), saying(gone()), deleting))
	n.carve(t, "ext4")
	n.settle(t)
	if _, orphan := n.worker.Orphans.All()[id]; n.has() && !orphan {
		t.Error("it is neither removed nor kept as an orphan")
	}
}

func TestAVolumeBearsTheNamesOfItsClaim(t *testing.T) {
	v := volume(on(here))
	v.Spec.ClaimRef = nil
	if got := labelsOf(v); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	v.Spec.ClaimRef = &v1alpha1.ClaimReference{Namespace: "shop", Name: "db"}
	if got := labelsOf(v); got["namespace"] != "shop" || got["claim"] != "db" {
		t.Errorf("got %v", got)
	}
}

func TestAFaultThatIsOverIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &maker{fails: 3, as: errBroken}
		f := NewFormatter(m, staging.OneCopy{Locks: &keyed.Locks[string]{}})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Start(ctx) }()
		f.Enqueue(provision.FormatRequest{ID: id})
		<-time.After(time.Hour)
		synctest.Wait()
		m.made, m.fails = nil, 1
		f.Enqueue(provision.FormatRequest{ID: id})
		<-time.After(2 * time.Second)
		synctest.Wait()
		if len(m.made) != 2 {
			t.Errorf("tried %d times, want again after a second", len(m.made))
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
