// Package zfs provisions zvols and datasets, which are filesystems, out of a node's zpools.
//
// # Ownership
//
// A pool is a zpool's root filesystem, or any filesystem in it that an administrator
// marked with the property berth.dev:pool, whose value is its own name. A volume is a
// zvol or a dataset in a hidden filesystem of the pool, berth-volumes, that bears the volume's
// id as its name and in a property; further properties record its filesystem, its owner and
// its source. Every other dataset is foreign: Berth counts it and never touches it. That holds
// for snapshots, too: a snapshot that others took of a volume outlives the volume.
//
// # Half-made volumes
//
// One command makes a volume with its properties, its reservation and, for a copy, its size.
// But ZFS makes the dataset first, then reserves the room, and writes the record last. Each is a
// separate write to the disks. So a loss of power can leave two states. A command that fails
// while udev already looks at the new zvol can leave them, too:
//
//   - A dataset without any record. If it has the place and the name of a volume and holds
//     nothing, Berth takes it for a leftover of that volume. It is no volume. Berth destroys it
//     only when that very volume is to be made or deleted.
//   - A volume whose room was not reserved. Berth reserves the room when the volume is asked
//     for again. If the request that makes it finds no room, Berth destroys the volume.
//
// A zvol grows before its reservation grows. If a loss of power comes in between, Berth enlarges
// the reservation when it tidies the zpool.
//
// The rejected alternative is to make volumes elsewhere and to rename them when they are
// complete. That takes a second process and a third write, and another device of a zvol.
//
// # Datasets
//
// A dataset is a filesystem from the moment it is made. Format only records that it may hold
// data from now on. Only that record tells a volume with data from one that was made and not
// used yet: the filesystem itself could not show it.
//
// Its size is a quota on the space that its files take (refquota), and as much is reserved
// (refreservation), so it grows while it is mounted. It is mounted by its name. ZFS renames a
// mounted dataset, and unmounts a dataset that it destroys. So Berth first looks whether the
// dataset is mounted, in the kernel's statistics, which cover every mount namespace.
//
// # Snapshots and copies
//
// A snapshot is a snapshot of ZFS, and a copy is a clone, so ZFS makes both at once whatever the
// size. In ZFS a snapshot goes with its volume, and a clone needs its snapshot. In Berth neither
// needs the other:
//
//   - Berth does not destroy a volume that has snapshots. It renames it into another hidden
//     filesystem, berth-trash: then the volume is deleted. There it gives up its reservation,
//     and the data that was written since its last snapshot. Berth destroys it after its last
//     snapshot went.
//   - Berth destroys a snapshot with "-d": if it has clones, the kernel destroys it with the
//     last of them. Until then it is no snapshot of Berth's.
//   - A copy of a volume is a clone of a snapshot that Berth takes for it, and destroys
//     likewise as soon as the copy is there.
//
// Berth derives all of that from a report of ZFS, so a new process goes on where a crash ended
// the last one. It makes plans from facts. It sweeps up leftovers that no plan needs, when
// nothing changed for a moment, and at the start. Promoting clones instead would move snapshots
// between volumes, and a snapshot would no longer tell which volume it is of.
//
// # Copies of replicated volumes
//
// A volume can be a copy of a replicated volume: see package provision, and docs/replication.md.
// Beside its head the copy has a hidden filesystem, berth-copies/ID, with its record and its
// strands. A stream is received into a strand of its own, and the head is a clone of the newest
// point. The rejected alternative is to receive into one dataset and to roll that back when the
// volume went on from an older point: it would destroy a branch, or need another form for it.
//
// A point is the snapshot of its number, in whichever dataset of the copy ZFS keeps it: before a
// strand goes, a clone takes over the snapshots that it needs. Here promoting loses nothing: all
// these datasets are of one volume.
//
// # Changes at the same time
//
// ZFS writes changes that are made at the same time to the disks together, so changes of a zpool
// do not wait for each other. Each change locks the ids that it alters, and shares the locks of
// the ids that must only stay. Room is promised to it before it begins, and counts as taken from
// then on. Berth reads a zpool only while nothing changes in it: otherwise the answer would not
// tell which changes it includes.
//
// # Space
//
// ZFS reserves room for all of a volume, with its metadata. Berth charges a volume its size and
// a 32nd, and a snapshot the size of the data that it holds and a 32nd. The figures of a pool are
// in units of 4 MiB after that charge. ZFS needs more room than that, which changes all the time.
// The figures must not change with it, so Berth sets an allowance aside from the total: a 64th of
// the zpool and 16 MiB. Berth admits a snapshot or a copy if all of its volume could be
// overwritten afterwards. Only ZFS can tell how much a snapshot holds. Berth asks after it took
// the snapshot: until then it charges the size of the whole volume.
//
// # State without processes
//
// The provisioner reads each zpool with one "zfs list", and then keeps the facts up to date by
// its own operations. The kernel tells without a process which zpools there are and whether they
// work. It also counts the zvols that have a device, as all of Berth's have: as long as that is
// the number of the known zvols, a zvol that is not known is not there. The provisioner reads
// snapshots only in zpools with volumes of Berth's: a node may have thousands of others. It never
// asks a suspended zpool: the process might not return.
//
// # Names
//
// ZFS knows a dataset by its name alone, and the facts are up to a minute old. So right before a
// step that destroys, renames or rolls back something, the provisioner asks ZFS what bears the name
// now: see [zpool.Subject].
//
// # Failure
//
// The text of a message of ZFS decides nothing. When a command fails, the provisioner reads the
// zpool again, and the facts decide: the change is done all the same, is impossible now, or needs
// other steps. A refusal that the facts do not explain is transient, with two exceptions. If ZFS
// does not destroy a volume on which nothing depends, the volume is in use. If ZFS does not make
// a volume while little room is left, there was no room for it.
package zfs
