package lvm_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

func TestOperationsStartNoMoreProcessesThanTheyMust(t *testing.T) {
	removed, wiped := map[string]int{"lvremove": 1}, map[string]int{"lvchange": 1, "lvremove": 1}
	for name, tc := range map[string]struct {
		pool    provision.PoolRef
		wipe    provision.Wipe
		deleted map[string]int
	}{
		"thick":                 {vg, "", wiped},
		"thick and overwritten": {vg, provision.WipeZero, wiped},
		"thick and left":        {vg, provision.WipeNone, removed},
		"thin":                  {thin, "", removed},
	} {
		t.Run(name, func(t *testing.T) { testBudget(t, tc.pool, tc.wipe, tc.deleted) })
	}
}

func testBudget(t *testing.T, pool provision.PoolRef, wipe provision.Wipe, deleted map[string]int) {
	host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
	host.AddThinPool(vg.Name, "pool", 50)
	counter, c := counted(host)
	p, _ := start(t, c)
	awaitChange(t, p) // it watches
	ctx := t.Context()
	r := requestIn(pool, "pvc-1", 2)
	r.Wipe = wipe
	for _, step := range []struct {
		name string
		do   func() error
		want map[string]int
	}{
		{"the first report", func() error { _, err := p.Report(ctx); return err }, map[string]int{"lvmconfig": 1, "fullreport": 1}},
		{"create", func() error { _, err := p.Create(ctx, r); return err }, map[string]int{"lvcreate": 1}},
		{"create again", func() error { _, err := p.Create(ctx, r); return err }, nil},
		{"report after an own change", func() error { _, err := p.Report(ctx); return err }, nil},
		{"get", func() error { _, err := p.Get(ctx, "pvc-1"); return err }, nil},
		{"format, beside mkfs", func() error {
			_, err := p.Format(ctx, provision.FormatRequest{ID: "pvc-1", Filesystem: "ext4"})
			return err
		}, map[string]int{"lvchange": 1}},
		{"format again", func() error {
			_, err := p.Format(ctx, provision.FormatRequest{ID: "pvc-1", Filesystem: "ext4"})
			return err
		}, nil},
		{"expand", func() error {
			_, err := p.Expand(ctx, provision.ExpandRequest{ID: "pvc-1", Size: 4 * unit})
			return err
		}, map[string]int{"lvextend": 1}},
		{"delete", func() error { defer settle(t, p); return p.Delete(ctx, "pvc-1") }, deleted},
		{"delete again, after a look", func() error { return p.Delete(ctx, "pvc-1") }, map[string]int{"fullreport": 1}},
		{"report at the end", func() error { _, err := p.Report(ctx); return err }, nil},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := counter.Take(); !cmp.Equal(got, step.want) && len(got)+len(step.want) > 0 {
			t.Errorf("%s started %v, want %v", step.name, got, step.want)
		}
	}
}

func TestOneForeignChangeCostsOneReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100, "other": 100})
		counter, c := counted(host)
		p, _ := start(t, c)
		awaitChange(t, p) // it watches
		if _, err := p.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
		counter.Take()
		host.PutForeign(vg.Name, "theirs", unit)
		awaitChange(t, p)
		pools, err := p.Report(t.Context())
		if err != nil || pools[1].Foreign != unit {
			t.Errorf("reported %+v, %v", pools, err)
		}
		if got := counter.Take(); !cmp.Equal(got, map[string]int{"fullreport": 1}) {
			t.Errorf("started %v", got)
		}
	})
}

func awaitChange(t *testing.T, p provision.Provisioner) {
	t.Helper()
	select {
	case <-p.Changed():
	case <-time.After(time.Minute):
		t.Fatal("no change was signalled")
	}
}

// inBubble runs a case with a clock of its own, which jumps ahead whenever all goroutines wait.
func inBubble(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

// eventually calls ok until it is true, ever more rarely: in a bubble, minutes may pass until the
// provisioner looks again.
func eventually(t *testing.T, ok func() bool, failure string) {
	t.Helper()
	deadline := time.After(time.Hour)
	for pause := time.Millisecond; !ok(); pause = min(2*pause, time.Second) {
		select {
		case <-time.After(pause):
		case <-deadline:
			t.Fatal(failure)
		}
	}
}

func TestAChangeBeforeTheWatchBeganIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		_, c := counted(host)
		early, err := lvm.New(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := early.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
		host.PutForeign(vg.Name, "theirs", unit) // the provisioner does not watch yet
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := early.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		awaitChange(t, early)
		if pools, err := early.Report(t.Context()); err != nil || pools[0].Foreign != unit {
			t.Errorf("reported %+v, %v", pools, err)
		}
		stop()
		running.Wait()
	})
}

func TestThickSnapshotsAndCopiesStartNoMoreProcessesThanTheyMust(t *testing.T) {
	for name, tc := range map[string]struct {
		wipe provision.Wipe
		// copied are the processes of copying a volume, deleted those of deleting a snapshot.
		copied, deleted map[string]int
	}{
		"wiped": {"", map[string]int{"lvcreate": 2, "lvchange": 1, "lvconvert": 1, "lvremove": 1}, map[string]int{"lvchange": 1, "lvremove": 1}},
		"left":  {provision.WipeNone, map[string]int{"lvcreate": 2, "lvchange": 1, "lvremove": 1}, map[string]int{"lvremove": 1}},
	} {
		t.Run(name, func(t *testing.T) { testThickBudget(t, tc.wipe, tc.copied, tc.deleted) })
	}
}

func testThickBudget(t *testing.T, wipe provision.Wipe, copied, deleted map[string]int) {
	host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
	counter, c := counted(host)
	p, _ := start(t, c)
	awaitChange(t, p) // it watches
	r := request("pvc-1", 2)
	r.Wipe = wipe
	create(t, p, r)
	counter.Take()
	ctx, clone, restore := t.Context(), request("pvc-2", 2), request("pvc-3", 4)
	clone.Source.Volume, restore.Source.Snapshot, restore.Wipe = "pvc-1", "snap-1", wipe
	done := func() bool {
		pool := poolOf(t, p, vg)
		busy := len(pool.Wiping) > 0
		for _, v := range pool.Volumes {
			busy = busy || v.Copying
		}
		for _, s := range pool.Snapshots {
			busy = busy || s.Copying
		}
		return !busy
	}
	for _, step := range []struct {
		name string
		do   func() error
		want map[string]int
	}{
		{"snapshot", func() error {
			_, err := p.Snapshot(ctx, provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"})
			return err
		}, copied},
		{"snapshot again", func() error {
			_, err := p.Snapshot(ctx, provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"})
			return err
		}, nil},
		{"restore larger", func() error { _, err := p.Create(ctx, restore); return err }, map[string]int{"lvcreate": 1, "lvchange": 1}},
		{"clone", func() error { _, err := p.Create(ctx, clone); return err }, copied},
		{"clone again", func() error { _, err := p.Create(ctx, clone); return err }, nil},
		{"delete snapshot", func() error { return p.DeleteSnapshot(ctx, "snap-1") }, deleted},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		eventually(t, done, step.name+" does not come to an end")
		if got := counter.Take(); !cmp.Equal(got, step.want) && len(got)+len(step.want) > 0 {
			t.Errorf("%s started %v, want %v", step.name, got, step.want)
		}
	}
}

func TestSnapshotsAndCopiesStartNoMoreProcessesThanTheyMust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := thinHost()
		counter, c := counted(host)
		p, _ := start(t, c)
		awaitChange(t, p) // it watches
		create(t, p, requestIn(thin, "pvc-1", 2))
		counter.Take()
		restored := provision.Source{Snapshot: "snap-1"}
		for _, step := range []struct {
			name string
			do   deed
			want map[string]int
		}{
			{"snapshot", snap("snap-1", "pvc-1"), map[string]int{"lvcreate": 1}},
			{"snapshot again", snap("snap-1", "pvc-1"), nil},
			{"get snapshot", func(ctx context.Context, _ *lvmtest.Host, p provision.Full) error {
				_, err := p.GetSnapshot(ctx, "snap-1")
				return err
			}, nil},
			{"restore", carve(copyOf("pvc-2", 2, restored)), map[string]int{"lvcreate": 1}},
			{"restore again", carve(copyOf("pvc-2", 2, restored)), nil},
			{"restore larger", carve(copyOf("pvc-3", 4, restored)), map[string]int{"lvcreate": 1, "lvextend": 1}},
			{"restore larger again", carve(copyOf("pvc-3", 4, restored)), nil},
			{"clone", carve(copyOf("pvc-4", 2, provision.Source{Volume: "pvc-1"})), map[string]int{"lvcreate": 1}},
			{"delete snapshot", func(ctx context.Context, _ *lvmtest.Host, p provision.Full) error {
				return p.DeleteSnapshot(ctx, "snap-1")
			}, map[string]int{"lvremove": 1}},
			{"report", func(ctx context.Context, _ *lvmtest.Host, p provision.Full) error {
				_, err := p.Report(ctx)
				return err
			}, nil},
		} {
			if err := step.do(t.Context(), host, p); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			if got := counter.Take(); !cmp.Equal(got, step.want) && len(got)+len(step.want) > 0 {
				t.Errorf("%s started %v, want %v", step.name, got, step.want)
			}
		}
	})
}
