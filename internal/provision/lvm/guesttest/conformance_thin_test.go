//go:build platform

package guesttest

import (
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

func TestConformanceOfThinPoolsOnRealLVM(t *testing.T) {
	pool := thinPool(t, 512)
	conformance.Run(t, func(t *testing.T) conformance.Harness { return lvmtest.RealConformance(t, pool) })
}

func TestConformanceOfSnapshotsOnRealLVM(t *testing.T) {
	pool := thinPool(t, 512)
	conformance.RunSnapshots(t, func(t *testing.T) conformance.Harness { return lvmtest.RealConformance(t, pool) })
}

// used fills every block of a thin pool with the data of a foreign volume, which it then removes.
// The kernel gives out blocks in turn, and begins again with the first after the last.
func used(t *testing.T, pool provision.PoolRef, size int64) {
	t.Helper()
	lvmtest.RealForeignThin(t, pool.Name, "theirs", size)
	if err := overwrite("/dev/vg-berth/theirs", size); err != nil {
		t.Fatal(err)
	}
	lvmtest.LVM(t, "lvremove", "--yes", "vg-berth/theirs")
}

func TestNoThinVolumeShowsDataOfAnotherOnRealLVM(t *testing.T) {
	const size = 128
	pool := thinPool(t, size)
	used(t, pool, size*mib)
	conformance.RunForgets(t, func(t *testing.T) conformance.Harness { return lvmtest.RealConformance(t, pool) })
}
