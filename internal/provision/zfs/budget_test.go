package zfs_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

func TestOperationsStartNoMoreProcessesThanTheyMust(t *testing.T) {
	h := newHost()
	h.PutFilesystem(parent+"/berth-volumes", hidden)
	h.PutFilesystem(parent+"/berth-trash", hidden)
	counter, c := counted(h)
	now := time.Now()
	c.Now = func() time.Time { return now }
	tidy := later(t, &c)
	p, _ := start(t, c)
	awaitChange(t, p) // it runs
	ctx := t.Context()
	copied := func(id string, from provision.Source) func() error {
		return func() error {
			r := request(id, 9)
			r.Source = from
			_, err := p.Create(ctx, r)
			return err
		}
	}
	create := func() error { _, err := p.Create(ctx, request("pvc-1", 8)); return err }
	report := func() error { _, err := p.Report(ctx); return err }
	format := func() error {
		_, err := p.Format(ctx, provision.FormatRequest{ID: "pvc-1", Filesystem: "ext4"})
		return err
	}
	snapshot := func() error {
		_, err := p.Snapshot(ctx, provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"})
		return err
	}
	remove := func(id string) func() error { return func() error { return p.Delete(ctx, id) } }
	type processes = map[string]int
	for _, step := range []struct {
		name string
		do   func() error
		// want are the processes that the caller waits for, and later those that follow.
		want, later processes
	}{
		{"the first report, of two zpools", report, processes{"zfs list": 2, "zfs version": 1}, nil},
		{"create", create, processes{"zfs create": 1}, nil},
		{"create again", create, nil, nil},
		{"report after an own change", report, nil, nil},
		{"get", func() error { _, err := p.Get(ctx, "pvc-1"); return err }, nil, nil},
		{"format, beside mkfs", format, processes{"zfs set": 1}, nil},
		{"format again", format, nil, nil},
		{"expand", func() error {
			_, err := p.Expand(ctx, provision.ExpandRequest{ID: "pvc-1", Size: 9 * unit})
			return err
		}, processes{"zfs set": 2}, nil},
		{"snapshot", snapshot, processes{"zfs snapshot": 1}, processes{"zfs list": 1}},
		{"snapshot again", snapshot, nil, nil},
		{"restore", copied("pvc-2", provision.Source{Snapshot: "snap-1"}), processes{"zfs clone": 1}, nil},
		{"delete with a snapshot", remove("pvc-1"), processes{"zfs list": 1, "zfs rename": 1}, processes{"zfs set": 1, "zfs list": 1, "zfs rollback": 1}},
		{"clone", copied("pvc-3", provision.Source{Volume: "pvc-2"}), processes{"zfs snapshot": 1, "zfs clone": 1}, processes{"zfs list": 1, "zfs destroy": 1}},
		{"delete the clone and the base of the clone", remove("pvc-3"), processes{"zfs list": 1, "zfs destroy": 1}, nil},
		{"delete the copy", remove("pvc-2"), processes{"zfs list": 1, "zfs destroy": 1}, nil},
		{"delete the snapshot, and the volume with the last", func() error { return p.DeleteSnapshot(ctx, "snap-1") }, processes{"zfs list": 1, "zfs destroy": 1}, processes{"zfs list": 1, "zfs destroy": 1}},
		{"delete again", remove("pvc-1"), nil, nil},
		{"report at the end", report, nil, nil},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := counter.Take(); !cmp.Equal(got, step.want, cmpopts.EquateEmpty()) {
			t.Errorf("%s started %v, want %v", step.name, got, step.want)
		}
		tidy(p)
		if got := counter.Take(); !cmp.Equal(got, step.later, cmpopts.EquateEmpty()) {
			t.Errorf("after %s, %v were started, want %v", step.name, got, step.later)
		}
	}
}

func TestAMissingVolumeIsLookedForOnlyWhereItCouldBe(t *testing.T) {
	h := newHost()
	h.PutForeign("other/theirs", unit)
	counter, c := counted(h)
	var now atomic.Int64
	c.Now = func() time.Time { return time.Unix(1e9+now.Load(), 0) }
	p, _ := start(t, c)
	awaitChange(t, p) // it runs
	if _, err := p.Report(t.Context()); err != nil {
		t.Fatal(err)
	}
	counter.Take()
	ask := func(want map[string]int, of func() error, err error) {
		t.Helper()
		if got := of(); !errors.Is(got, err) {
			t.Errorf("got %v, want %v", got, err)
		}
		if got := counter.Take(); !cmp.Equal(got, want, cmpopts.EquateEmpty()) {
			t.Errorf("started %v, want %v", got, want)
		}
	}
	volume := func() error { _, err := p.Get(t.Context(), "pvc-1"); return err }
	snapshot := func() error { _, err := p.GetSnapshot(t.Context(), "snap-1"); return err }
	ask(nil, volume, provision.ErrNotFound)
	ask(nil, snapshot, provision.ErrNotFound) // no zpool has volumes
	create(t, p, "pvc-2", 1)
	counter.Take()
	ask(nil, volume, provision.ErrNotFound)
	now.Add(10)
	ask(map[string]int{"zfs list": 1}, snapshot, provision.ErrNotFound)
	now.Add(1)
	ask(nil, snapshot, provision.ErrNotFound)
	h.Edit(func(zpools map[string]*zfstest.Zpool) { // from a backup
		zpools["tank"].Datasets[volumes+"pvc-1"] = &zfstest.Dataset{Volsize: unit, Props: map[string]string{"berth.dev:volume": "pvc-1"}}
	})
	ask(map[string]int{"zfs list": 2}, volume, nil)
	ask(nil, volume, nil)
}

func TestSnapshotsOfOthersAreNotRead(t *testing.T) {
	h := newHost()
	c := config(h)
	c.RefreshInterval = time.Millisecond
	var mu sync.Mutex
	types := map[string]string{} // last asked of a zpool
	h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
		if c.Args[0] == "list" {
			mu.Lock()
			types[c.Args[len(c.Args)-1]] = c.Args[slices.Index(c.Args, "-t")+1]
			mu.Unlock()
		}
		return do()
	}
	p, _ := start(t, c)
	v := create(t, p, "pvc-1", 1)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); ; {
		mu.Lock()
		ours, theirs := types["tank"], types["other"]
		mu.Unlock()
		if ours == "filesystem,volume,snapshot" && theirs == "filesystem,volume" {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("asked %q of Berth's zpool and %q of another", ours, theirs)
		case <-tick.C:
		}
	}
	if got, err := p.Get(t.Context(), "pvc-1"); err != nil || got != v {
		t.Errorf("%+v, %v", got, err)
	}
}

func awaitChange(t *testing.T, p provision.Provisioner) {
	t.Helper()
	select {
	case <-p.Changed():
	case <-time.After(time.Minute):
		t.Fatal("no change was signalled")
	}
}
