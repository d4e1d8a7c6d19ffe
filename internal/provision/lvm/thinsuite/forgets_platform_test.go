//go:build platform

package thinsuite

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

const poolSize = 128 << 20

// used fills every block of a thin pool with the data of a foreign volume, which it then removes.
// The kernel gives out blocks in turn, and begins again with the first after the last.
func used(t *testing.T, pool provision.PoolRef) {
	t.Helper()
	lvmtest.RealForeignThin(t, pool.Name, "theirs", poolSize)
	f, err := os.OpenFile("/dev/vg-berth/theirs", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range poolSize >> 20 {
		if _, err := f.Write(bytes.Repeat([]byte{0xa5}, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	lvmtest.LVM(t, "lvremove", "--yes", "vg-berth/theirs")
}

func TestNoThinVolumeShowsDataOfAnotherOnRealLVM(t *testing.T) {
	group := lvmtest.RealGroup(t, "vg-berth", lvmtest.Disks(t, 1)[0])
	pool := lvmtest.RealThinPool(t, group.Name, "pool", poolSize)
	used(t, pool)
	conformance.RunForgets(t, func(t *testing.T) conformance.Harness { return lvmtest.RealConformance(t, pool) })
}
