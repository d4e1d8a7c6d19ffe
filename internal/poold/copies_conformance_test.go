package poold_test

import (
	"testing"

	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/provision/memory/memorytest"
)

// remote is a poold whose volumes can have copies, as the suite wants it.
type remote struct {
	*poold.Client
	copies provision.Replicator
}

func (r remote) Replicator() provision.Replicator { return r.copies }

// replicator returns the Replicator of a poold's pools of a type.
func replicator(t *testing.T, c *poold.Client, poolType string) provision.Replicator {
	t.Helper()
	copies, err := c.ReplicatorOf(t.Context(), poolType)
	if err != nil {
		t.Fatal(err)
	}
	return copies
}

func TestConformanceOfReplicationAcrossTheSocket(t *testing.T) {
	conformance.RunReplication(t, func(t *testing.T) [2]conformance.ReplicaNode {
		return [2]conformance.ReplicaNode{remoteNode(t), remoteNode(t)}
	})
}

// remoteNode is a node of several types of pools behind a socket.
func remoteNode(t *testing.T) conformance.ReplicaNode {
	stop := func() {}
	others := newDisks()
	return memorytest.ReplicaNode(t, func(r memorytest.Replicating) provision.Provisioner {
		stop()
		all := provision.NewMux(
			provision.Member{Types: []string{provision.Device}, Provisioner: memory.New(others, nil)},
			provision.Member{Types: []string{provision.LVM}, Provisioner: r},
		)
		stopWatching := conformance.Watching(t, all.Run)
		s := socket(t)
		stopServing := serve(t, poold.Config{Socket: s, Node: poold.NewLocal(all, mountmemory.New(others))})
		client := connected(t, s)
		stop = func() { client.Close(); stopServing(); stopWatching() }
		return remote{client, replicator(t, client, provision.LVM)}
	})
}
