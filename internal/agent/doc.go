// Package agent is the process that runs on every node of a driver. Agent serves volumes in pools, and
// DiskAgent shared disks; both stand behind one front. What follows is about Agent. DiskAgent has the
// same two halves, with an Owner (package owner), its loop and its journal in place of pools and workers,
// and writes nothing but the record of ownership, status.ownership of its Volumes, and how far the wipes of
// LUNs are that are ordered from its node (package released).
//
// Agent has two halves. The local half serves CSI's node service, registers with
// the kubelet and answers health checks. It works while the API server is away,
// so that pods start and stop and mounted volumes stay mounted. The cluster half
// carries out the node's replicas and publishes the state of the node's pools.
// The agent sets it up anew whenever it fails; it never ends the process.
//
//	local    staging  - puts volumes where pods find them (behind csi.Node)
//	         inline   - makes and removes the volumes that pods describe themselves
//	         register - makes the driver known to the kubelet
//	         pools    - keeps the latest report of the node's pools
//	         metrics  - measures operations, shows pools
//	cluster  replica  - carries out the node's replicas
//	         snapshot - takes, keeps and removes the node's snapshots
//	         worker   - carries out the decisions about replicas and snapshots
//	         inline   - removes the volumes of pods that are gone
//	         manage   - lets the pool daemon make and extend pools for PoolClasses
//	         trim     - has mounted filesystems discard their free blocks as PoolClasses ask
//	         report   - publishes StorageNode, capacity and heartbeat
//
// Both halves work on one poold.Node and share one lock per volume.
//
// NewReplicated is an Agent that serves volumes with copies on several nodes, too: with an Owner as that of
// DiskAgent, whose medium is the copies in the pools (package pooled), and streams to and from other nodes. The
// kind of a volume says which part serves it. That part writes the record of ownership and no entry.
//
// Pools that do not answer do not hold up the others: the agent waits for them for a while,
// then registers the driver without them, and the report names them.
//
// Health: /healthz fails when the CSI socket does not answer. A restart of the
// process can mend that. /readyz fails also when the pools cannot be listed or the
// kubelet has not accepted the driver. A hanging LVM does not fail /healthz: a
// restart would only lose the calls that still work. Neither check asks the API
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
