package memory_test

import (
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/memory/memorytest"
)

func TestConformanceOfReplication(t *testing.T) {
	conformance.RunReplication(t, func(t *testing.T) [2]conformance.ReplicaNode {
		directly := func(r memorytest.Replicating) provision.Provisioner { return r }
		return [2]conformance.ReplicaNode{memorytest.ReplicaNode(t, directly), memorytest.ReplicaNode(t, directly)}
	})
}
