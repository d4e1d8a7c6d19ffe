// Package provision defines what carves volumes out of a node's pools.
//
// A pool provisioner (LVM, ZFS, whole devices, later btrfs) implements
// Provisioner; the agent calls it directly or across poold's socket. Identity
// is kept with the data (tags of a logical volume, properties of a dataset), so
// a node can be adopted again after its API objects were lost.
//
// Three rules hold for every implementation, and the suite in conformance
// tests them:
//
//   - Every operation is idempotent by volume id. Creating what exists with the
//     same shape, deleting what is gone and expanding what is large enough succeed.
//   - A caller that gives up does not leave a half-made change: what has begun to
//     change the pool is finished in the background, never killed, and the next
//     call sees its outcome.
//   - A volume is blank until Format has recorded otherwise. That record, not
//     what probing the device says, decides whether a filesystem may be made.
package provision
