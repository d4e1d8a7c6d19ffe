//go:build platform

package thinsuite

import (
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

func thinPool(t *testing.T) provision.PoolRef {
	t.Helper()
	group := lvmtest.RealGroup(t, "vg-berth", lvmtest.Disks(t, 1)[0])
	return lvmtest.RealThinPool(t, group.Name, "pool", 512<<20)
}

func TestConformanceOfThinPoolsOnRealLVM(t *testing.T) {
	pool := thinPool(t)
	conformance.Run(t, func(t *testing.T) conformance.Harness { return lvmtest.RealConformance(t, pool) })
}

func TestConformanceOfSnapshotsOnRealLVM(t *testing.T) {
	pool := thinPool(t)
	conformance.RunSnapshots(t, func(t *testing.T) conformance.Harness { return lvmtest.RealConformance(t, pool) })
}
