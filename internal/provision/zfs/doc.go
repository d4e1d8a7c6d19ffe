// Package zfs provisions zvols and datasets, which are filesystems, out of a node's zpools.
//
// # What is whose
//
// A pool is a zpool's root filesystem, or any filesystem in it that an administrator
// marked with the property berth.dev:pool, whose value is its own name. A volume is a
// zvol or a dataset in a hidden filesystem of the pool, berth-volumes, that bears the volume's
// id as its name and in a property; further properties record its filesystem, its owner and
// its source. Every other dataset is foreign: counted, never touched. That holds for
// snapshots, too: one that others took of a volume outlives the volume.
//
// # Half made is not there
//
// One command makes a volume with its properties, its reservation and, for a copy, its size.
// But ZFS makes the dataset first, then reserves the room, and writes the record last, each with
// a write to the disks of its own. So there are two states that a loss of power can leave, or a
// command that fails when udev already looks at a zvol:
//
//   - A dataset without any record. In the place of a volume, with a volume's name and
//     nothing in it, it is taken for what was left of that volume: it is no volume, and is
//     destroyed when that very one is to be made or deleted, and only then.
//   - A volume whose room was not reserved. It gets it when it is asked for again; when it was
//     made just then and there is no room, it is destroyed.
//
// A zvol that grows does so before its room does. What a loss of power leaves too short is
// made up for when things are tidied up.
//
// The rejected alternative is to make volumes elsewhere and to rename them when they are
// complete. That takes a second process and a third write, and another device of a zvol.
//
// # Datasets
//
// A dataset is a filesystem from the moment it is made. Format only records that it may hold
// data from now on: that record, and nothing that the filesystem itself could show, tells a
// volume that was carved for nobody from one with data.
//
// Its size is a quota on what its files take (refquota), and as much is reserved
// (refreservation), so it grows while it is mounted. It is mounted by its name. ZFS renames
// what is mounted, and unmounts what it is told to destroy, so whether it is mounted is
// looked at before, in the kernel's statistics, which know of every mount namespace.
//
// # Snapshots and copies
//
// A snapshot is ZFS's, and a copy is a clone, so both are made at once whatever the
// size. In ZFS a snapshot goes with its volume and a clone needs its snapshot; here
// neither needs the other:
//
//   - A volume with snapshots is not destroyed but renamed into another hidden
//     filesystem, berth-trash: that is when it is deleted. There it gives up its
//     reservation, and what was written since its last snapshot. It is destroyed after
//     its last snapshot went.
//   - A snapshot is destroyed with "-d": one that has clones goes, in the kernel, with the
//     last of them. Meanwhile it is no snapshot of Berth's.
//   - A copy of a volume is a clone of a snapshot taken for it, which is destroyed
//     likewise as soon as the copy is there.
//
// All of that is derived from what a report says, so that whoever comes after a crash
// goes on where it happened: plans are made from facts, and what no plan wants is
// swept up when nothing changed for a moment, and at the start. Promoting clones instead would
// move snapshots between volumes, and with them the answer to what they are of.
//
// # At the same time
//
// ZFS writes what was changed at the same time to the disks together, so changes of a zpool do
// not wait for each other. Each holds the ids of what it is about, and shares those of what
// must only stay; room is promised to it before it begins, and counts as taken from then on.
// A zpool is read only while nothing changes in it: nobody could tell what the answer is of.
//
// # Space
//
// ZFS reserves room for all of a volume, with its metadata. A volume is charged its
// size and a 32nd, a snapshot as much of what it holds; the figures of a pool are in
// units of 4 MiB after that charge. What ZFS needs beyond it comes out of an allowance,
// a 64th of the zpool and 16 MiB, which is set aside from the total: it moves all the time, and
// the figures shall not. A snapshot or a copy is admitted if all of its volume could be
// overwritten afterwards. What a snapshot holds only ZFS can tell, and is asked afterwards:
// until then it is charged all of its volume.
//
// # State without processes
//
// What the provisioner knows comes from one "zfs list" per zpool, and is then kept up
// to date by its own operations. Which zpools there are and whether they work, the
// kernel tells without a process. It also counts the zvols that have a device, as
// Berth's all have: as long as it shows no more than are known, a volume that is not known is
// not there. Snapshots are read only of zpools with volumes of Berth's: a node may have
// thousands of others. A zpool that is suspended is never asked: a process
// that does might not return.
//
// # Failure
//
// Nothing is decided by the text of a message of ZFS. When a command fails, the zpool is
// read again, and the facts decide: done all the same, impossible now, or to be gone about
// differently. A refusal that they do not explain is transient, but for two: a volume
// that is not destroyed although nothing depends on it is in use, and one that is not
// made while little is left had no room.
package zfs
