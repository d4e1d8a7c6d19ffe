//go:build platform

package lvmtest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
)

// step is an operation with the processes it may start.
type step struct {
	name string
	do   func() error
	want map[string]int
}

// deletion returns the processes that deleting a volume starts. A thick volume is marked, wiped
// and then removed.
func deletion(pool provision.PoolRef) map[string]int {
	if pool.Type == provision.LVMThin {
		return map[string]int{"lvremove": 1}
	}
	return map[string]int{"lvchange": 1, "lvremove": 1}
}

// RealBudget fails if an operation on a real pool starts other processes than it may.
func RealBudget(t *testing.T, pool provision.PoolRef) {
	c, counter, _ := RealConfig(t)
	p, _ := Start(t, c)
	select { // it watches
	case <-p.Changed():
	case <-time.After(time.Minute):
		t.Fatal("no change was signalled")
	}
	ctx := t.Context()
	if _, err := p.Report(ctx); err != nil {
		t.Fatal(err)
	}
	counter.Take()
	steps := []step{
		{"create", func() error {
			_, err := p.Create(ctx, provision.CreateRequest{ID: "pvc-1", Pool: pool, Size: 64 << 20, Labels: map[string]string{"claim": "data"}})
			return err
		}, map[string]int{"lvcreate": 1}},
		{"format", func() error {
			_, err := p.Format(ctx, provision.FormatRequest{ID: "pvc-1", Filesystem: "ext4"})
			return err
		}, map[string]int{"mkfs.ext4": 1, "lvchange": 1}},
		{"get", func() error { _, err := p.Get(ctx, "pvc-1"); return err }, map[string]int{}},
		{"expand", func() error {
			_, err := p.Expand(ctx, provision.ExpandRequest{ID: "pvc-1", Size: 128 << 20})
			return err
		}, map[string]int{"lvextend": 1}},
	}
	if pool.Type == provision.LVMThin {
		steps = append(steps, snapshotSteps(ctx, p, pool)...)
	}
	steps = append(steps, step{"delete", func() error { defer Settle(ctx, t, p, pool); return p.Delete(ctx, "pvc-1") }, deletion(pool)})
	for _, step := range steps {
		started := time.Now()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		t.Logf("%s took %v", step.name, time.Since(started).Round(time.Millisecond))
		// LVM numbered the change as foreseen, so nothing has to be read again.
		if _, err := p.Report(ctx); err != nil {
			t.Fatal(err)
		}
		if got := counter.Take(); !cmp.Equal(got, step.want) {
			t.Errorf("%s and a report started %v, want %v", step.name, got, step.want)
		}
	}
}

// snapshotSteps returns steps that snapshot and copy a volume of 128 MiB.
func snapshotSteps(ctx context.Context, p *lvm.Provisioner, pool provision.PoolRef) []step {
	snapshot := provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1", Limits: provision.Limits{Overprovision: 1000}}
	copied := func(id string, size int64, source provision.Source) func() error {
		return func() error {
			_, err := p.Create(ctx, provision.CreateRequest{ID: id, Pool: pool, Size: size, Source: source, Limits: snapshot.Limits})
			return err
		}
	}
	return []step{
		{"snapshot", func() error { _, err := p.Snapshot(ctx, snapshot); return err }, map[string]int{"lvcreate": 1}},
		{"get snapshot", func() error { _, err := p.GetSnapshot(ctx, "snap-1"); return err }, map[string]int{}},
		{"restore", copied("pvc-2", 128<<20, provision.Source{Snapshot: "snap-1"}), map[string]int{"lvcreate": 1}},
		{"restore larger", copied("pvc-3", 192<<20, provision.Source{Snapshot: "snap-1"}), map[string]int{"lvcreate": 1, "lvextend": 1}},
		{"clone", copied("pvc-4", 128<<20, provision.Source{Volume: "pvc-1"}), map[string]int{"lvcreate": 1}},
		{"delete snapshot", func() error { return p.DeleteSnapshot(ctx, "snap-1") }, map[string]int{"lvremove": 1}},
	}
}
