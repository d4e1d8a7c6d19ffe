//go:build platform

package snaptest

import (
	"testing"

	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

func TestConformanceOfSnapshotsOnRealLVM(t *testing.T) {
	group := lvmtest.RealGroup(t, "vg-berth", lvmtest.Disks(t, 1)[0])
	pool := lvmtest.RealThinPool(t, group.Name, "pool", 512<<20)
	conformance.RunSnapshots(t, func(t *testing.T) conformance.Harness { return lvmtest.RealConformance(t, pool) })
}
