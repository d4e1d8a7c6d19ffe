//go:build platform

package lvm_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run/runtest"
)

func TestSeveralAreRemovedByOneProcessOnRealLVM(t *testing.T) {
	for _, pool := range realPools(t) {
		t.Run(pool.Type, func(t *testing.T) {
			p, g, counter := removingReal(t)
			ids := carveSome(t, p, pool, 5)
			poolOf(t, p, pool)
			counter.Take()
			if failed := g.removeAtOnce(t, p, ids...); len(failed) > 0 {
				t.Errorf("failed: %v", failed)
			}
			if left := poolOf(t, p, pool); len(left.Volumes) > 0 || left.Free != left.Total-left.Foreign {
				t.Errorf("left is %+v", left)
			}
			// LVM numbered the changes as foreseen, so nothing was read again.
			if got := counter.Take(); !cmp.Equal(got, map[string]int{"lvremove": 2}) {
				t.Errorf("started %v", got)
			}
		})
	}
}

func TestAnOpenVolumeKeepsNoOtherFromRemovalOnRealLVM(t *testing.T) {
	for _, pool := range realPools(t) {
		t.Run(pool.Type, func(t *testing.T) {
			p, g, _ := removingReal(t)
			ids := carveSome(t, p, pool, 5)
			open, err := os.Open(filepath.Join("/dev", "vg-berth", ids[2]))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = open.Close()
				if err := p.Delete(context.WithoutCancel(t.Context()), ids[2]); err != nil {
					t.Error(err)
				}
			}()
			failed := g.removeAtOnce(t, p, ids...)
			if len(failed) != 1 || !errors.Is(failed[ids[2]], provision.ErrInUse) {
				t.Errorf("failed: %v; want %s alone, which is open", failed, ids[2])
			}
			if left := poolOf(t, p, pool); len(left.Volumes) != 1 || left.Volumes[0].ID != ids[2] {
				t.Errorf("left is %+v", left)
			}
		})
	}
}

// realPools makes a volume group and a thin pool in it.
func realPools(t *testing.T) []provision.PoolRef {
	t.Helper()
	group := lvmtest.RealGroup(t, "vg-berth", lvmtest.Disks(t, 1)[0])
	return []provision.PoolRef{group, lvmtest.RealThinPool(t, group.Name, "pool", 256<<20)}
}

// removingReal starts a provisioner on this machine. A gate holds its first removal.
func removingReal(t *testing.T) (*lvm.Provisioner, *gate, *runtest.Counter) {
	t.Helper()
	c, counter, _ := lvmtest.RealConfig(t)
	g := gated(counter)
	c.Runner = g
	p, _ := start(t, c)
	awaitChange(t, p) // it watches
	return p, g, counter
}
