// Package attached has the volumes of shared disks as staging uses them: those that this node has taken.
//
// A shared disk has no record beside its data, so the disk itself says whether a filesystem was made. A
// filesystem is made once, by the node whose epoch it is, on a disk whose first two MiB and last MiB are
// zeros. Whatever else is there stays: an administrator decides about it.
//
// A node may die while it makes the filesystem, and leaves a disk that is neither empty nor whole. So a
// mark comes first, near the end of the disk, where mkfs writes nothing. It goes last, before the volume
// is mounted for the first time. A disk with a mark has held no data yet, and the next owner begins
// again. The mark names the epoch, whose id no user of the volume knows: else what a pod writes into a
// file could be taken for one.
//
// A filesystem that is made here has a UUID that follows from the name of its volume. The disk of a volume
// that began blank may have been another volume's before: a filesystem with another UUID is what that one
// left, and is not mounted.
package attached
