package zfs_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
)

func TestOperationsStartNoMoreProcessesThanTheyMust(t *testing.T) {
	h := newHost()
	h.PutFilesystem(parent+"/berth-new", nil)
	h.PutFilesystem(parent+"/berth-trash", nil)
	counter, c := counted(h)
	p, _ := start(t, c)
	awaitChange(t, p) // it runs
	ctx := t.Context()
	copied := func(id string, from provision.Source) func() error {
		return func() error {
			r := request(id, 8)
			r.Source = from
			_, err := p.Create(ctx, r)
			return err
		}
	}
	create := copied("pvc-1", provision.Source{})
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
		want processes
	}{
		{"the first report, of two zpools", report, processes{"zfs list": 2, "zfs version": 1}},
		{"create", create, processes{"zfs create": 1, "zfs rename": 1}},
		{"create again", create, nil},
		{"report after an own change", report, nil},
		{"get", func() error { _, err := p.Get(ctx, "pvc-1"); return err }, nil},
		{"format, beside mkfs", format, processes{"zfs set": 1}},
		{"format again", format, nil},
		{"expand", func() error {
			_, err := p.Expand(ctx, provision.ExpandRequest{ID: "pvc-1", Size: 9 * unit})
			return err
		}, processes{"zfs set": 1}},
		{"snapshot, of an id that is looked for", snapshot, processes{"zfs list": 3, "zfs snapshot": 1}},
		{"snapshot again", snapshot, nil},
		{"restore", func() error {
			r := request("pvc-2", 9)
			r.Source.Snapshot = "snap-1"
			_, err := p.Create(ctx, r)
			return err
		}, processes{"zfs clone": 1, "zfs set": 1, "zfs rename": 1}},
		{"delete with a snapshot", remove("pvc-1"), processes{"zfs rename": 1, "zfs set": 1, "zfs rollback": 1}},
		{"clone", func() error {
			r := request("pvc-3", 9)
			r.Source.Volume = "pvc-2"
			_, err := p.Create(ctx, r)
			return err
		}, processes{"zfs snapshot": 1, "zfs clone": 1, "zfs set": 1, "zfs rename": 1, "zfs destroy": 1}},
		{"delete the clone, and with it its base", remove("pvc-3"), processes{"zfs destroy": 1}},
		{"delete the copy", remove("pvc-2"), processes{"zfs destroy": 1}},
		{"delete the snapshot, and the volume with the last", func() error { return p.DeleteSnapshot(ctx, "snap-1") }, processes{"zfs destroy": 2}},
		{"delete again, after a look", remove("pvc-1"), processes{"zfs list": 2}},
		{"report at the end", report, nil},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := counter.Take(); !cmp.Equal(got, step.want) && len(got)+len(step.want) > 0 {
			t.Errorf("%s started %v, want %v", step.name, got, step.want)
		}
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
