package memory_test

import (
	"testing"

	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/provision/memory/memorytest"
)

func TestConformanceOfManagedPools(t *testing.T) {
	conformance.RunManager(t, func(t *testing.T) conformance.Managed {
		disks := memory.NewDisks()
		start := func() conformance.ManagedNode { return memory.New(disks, nil) }
		return memorytest.Managed(t, disks, start)
	})
}
