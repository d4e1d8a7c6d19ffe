// Package provision defines the provisioners that carve volumes out of a node's pools.
//
// A pool provisioner (LVM, ZFS, btrfs, whole devices) implements
// Provisioner; the agent calls it directly or across poold's socket. Identity
// is kept with the data (tags of a logical volume, properties of a dataset), so
// a node can be adopted again after its API objects were lost.
//
// Pools differ by their type. Traits say how, in one table. A volume is a block device or a tree
// of files. Its Content says which of the two, and where it is.
//
// Three rules hold for every implementation, and the suite in conformance
// tests them:
//
//   - Every operation is idempotent by volume id. Creating a volume that exists with the
//     same shape succeeds, and so do deleting one that is gone and expanding one that is
//     large enough.
//   - A caller that gives up does not leave a half-made change: the provisioner finishes
//     a change that has begun in the background and never kills it. The next call sees
//     its outcome.
//   - A volume is blank until Format has recorded otherwise. That record decides whether
//     a filesystem may be made, not a probe of the device.
package provision
