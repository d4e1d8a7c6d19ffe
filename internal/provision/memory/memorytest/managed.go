package memorytest

import (
	"fmt"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/memory"
)

const unit = 4 << 20

// Managed returns a harness over empty disks; start makes a node over them.
func Managed(t *testing.T, disks *memory.Disks, start func() conformance.ManagedNode) conformance.Managed {
	group := provision.PoolRef{Type: provision.LVM, Name: "vg"}
	thin := provision.PoolRef{Type: provision.LVMThin, Name: "vg/thin"}
	plugged := 0
	return conformance.Managed{
		Node: start(), Restart: start, Group: group, Thin: thin,
		Plug: func() string {
			plugged++
			disk := provision.PoolRef{Type: provision.Device, Name: fmt.Sprintf("%s%d", provision.DiskPrefix, plugged)}
			disks.AddPool(memory.PoolConfig{PoolRef: disk, Total: 128 * unit, Unit: 128 * unit})
			return disk.Name
		},
		Use: func(disk string) {
			if err := disks.PutForeign(provision.PoolRef{Type: provision.Device, Name: disk}, "data", 1); err != nil {
				t.Fatal(err)
			}
		},
		PutGroup: func() { disks.AddPool(memory.PoolConfig{PoolRef: group, Total: 100 * unit}) },
		Fill:     func(data, metadata int) { disks.SetFillPercent(thin, data, metadata) },
	}
}
