// Package agent is the process that runs on every node that has pools.
//
// It has two halves. The local half serves CSI's node service, registers with
// the kubelet and answers health checks; it works while the API server is away,
// so that pods start and stop and mounted volumes stay mounted. The cluster
// half carries out the node's replicas and publishes what the node has; it is
// set up anew whenever it fails, and never ends the process.
//
//	local    staging  - puts volumes where pods find them (behind csi.Node)
//	         inline   - makes and removes the volumes that pods describe themselves
//	         register - makes the driver known to the kubelet
//	         pools    - keeps the latest report of the node's pools
//	         metrics  - measures operations, shows pools
//	cluster  replica  - carries out the node's replicas
//	         snapshot - takes, keeps and removes the node's snapshots
//	         worker   - what these two have in common
//	         inline   - removes the volumes of pods that are gone
//	         manage   - has pools made and extended as PoolClasses ask for it
//	         report   - publishes StorageNode, capacity and heartbeat
//
// Both halves work on one poold.Node and share one lock per volume.
//
// Pools that cannot be asked hold up no others: the driver is registered without them at last,
// and the report names them.
//
// Health: /healthz fails when the CSI socket does not answer, which a restart of
// the process can mend. /readyz fails also when the pools cannot be listed or the
// kubelet has not accepted the driver: a hanging LVM is no reason to restart the
// agent, which would only lose the calls that still work. Neither asks the API
// server.
//
// Who writes what:
//
//	Volume status.replicas[node]   replica, by server-side apply with resourceVersion
//	Snapshot status.replicas[node] snapshot, likewise
//	StorageNode, its status        report
//	CSIStorageCapacity of the node report
//	Lease berth-agent-<node>       report
package agent
