//go:build platform

package lvmtest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
)

// RealBudget holds each operation on a real pool to the processes it may start.
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
	for _, step := range []struct {
		name string
		do   func() error
		want map[string]int
	}{
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
		{"delete", func() error { return p.Delete(ctx, "pvc-1") }, map[string]int{"lvremove": 1}},
	} {
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
