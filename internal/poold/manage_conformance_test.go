package poold_test

import (
	"testing"

	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/provision/memory/memorytest"
)

func TestConformanceOfManagedPoolsAcrossTheSocket(t *testing.T) {
	conformance.RunManager(t, func(t *testing.T) conformance.Managed {
		disks := memory.NewDisks()
		return memorytest.Managed(t, disks, func() conformance.ManagedNode {
			s := socket(t)
			serve(t, poold.Config{Socket: s, Node: poold.NewLocal(memory.New(disks, nil), mountmemory.New(disks))})
			return connected(t, s)
		})
	})
}
