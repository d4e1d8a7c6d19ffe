// Package btrfs provisions subvolumes out of the filesystems of btrfs that are mounted on a node.
//
// # Pools
//
// A pool is a filesystem that the kernel has mounted in any mount namespace, and its name is the
// label. It must be named by a class, which Ensure and Create tell, or bear a mark of Berth's: the UUID of
// one that Berth made, or a quota group in which nothing is counted. No other filesystem is opened. Its UUID identifies it: the provisioner mounts it once more, at no path, for each reading and each
// change, and compares the UUID on that descriptor. Of two filesystems with one label neither is used, nor tidied.
//
// # Ownership
//
// Each volume has a directory in .berth/volumes at the top of the filesystem, and each snapshot
// one in .berth/snapshots. Its name is the id. An extended attribute of the directory is the record, and the
// subvolume "data" in it has the data. Only that subvolume is mounted for a pod, so no tenant
// reaches the record. The record has the subvolume's id and UUID: if another subvolume is in its place,
// it is not used. Everything else in the filesystem is foreign.
//
// # Changes
//
// A volume is made in .berth/making, and is there once its directory was moved to its place; it is
// deleted once its directory was moved to .berth/trash. Both moves are atomic. A change returns after the
// filesystem was written to the disks, and btrfs writes earlier changes with later ones. So what a crash
// left in making or in the trash needs no other sign: the next process removes it. A volume in the trash
// takes its room until the kernel has freed it.
//
// Btrfs destroys a subvolume that is mounted. So Berth first looks through the mount tables that it sees. The
// number of the filesystem and the id of the subvolume prove that a mount is of the volume: another filesystem
// may have the same paths.
//
// # Limits
//
// The limit of a volume is one of simple quotas (Linux 6.7). The subvolume and all that its tenant
// makes within it count for one group of level 1, and the group has the limit. By default the kernel
// puts a new subvolume into the group of the one that it is in. A tenant can choose another, or none;
// the next reading corrects that. Full quotas count what several subvolumes share, at the price of a search with
// every change, they leave out what tenants make, and a tenant can make them inconsistent: then no limit
// holds.
//
// Simple quotas count what was written for the subvolume that wrote it, until it is freed. So a snapshot
// or a clone takes nothing at first, and what its source overwrites still counts for the source. Berth
// notes with each copy how much of which subvolumes it keeps at most (Pins), gives these that much more
// room to write, and charges it: the source can be overwritten, and nothing is promised twice. No pin is
// larger than its source. What a source takes beyond that is kept by earlier copies, which have pins of
// their own. A copy in the trash pins until the kernel has freed it.
//
// # Space
//
// The room of a pool is computed from its disks and profiles. An allowance is set aside once for all:
// a 16th of the disks and 256 MiB for metadata, and one chunk of data, since btrfs sets chunks aside
// before they are needed. What volumes take counts as their size. All other data is foreign, and so is
// what copies keep of volumes that were deleted: the kernel counts both.
package btrfs
