// Package lvm provisions logical volumes: thick ones out of a node's volume groups, and thin ones
// out of the thin pools in them.
//
// # Ownership
//
// A volume's identity is kept with the volume. The logical volume bears the volume's id as its
// name and in a tag. A second tag records the filesystem once one was made, or that a pod was
// given the device. Every other logical volume is foreign: Berth counts it and never touches it.
// That holds for thin pools, too: administrators repair them, and make and grow them unless Berth
// does. Names belong to the group: a thick and a thin volume of one group cannot have the same
// name.
//
// # Devices that pods write to
//
// LVM reads a device that a pod writes to, such as its raw block volume, as it reads any disk.
// Such a device is a loop device of the kubelet's, a zvol, or a disk that was handed out. The
// kernel's description of a device decides whether pods write to it, never its contents
// (writtenByPods). A filter, in addition to the machine's own, keeps LVM's commands from such
// devices. Berth also drops them from each report: a device may appear while LVM starts, or the
// machine's filter may let it through. So a group on such a device is no pool and holds no
// volumes, and Berth runs no command on it.
//
// A name alone does not identify a group. If two groups have one name, Berth uses neither. Nor
// does it use a group that has the name of another one that held volumes. In both cases Berth
// keeps the facts that it knew before, and changes nothing. So a group's name is unambiguous in
// every command. LVM itself changes neither of two groups of one name that it sees. An id cannot
// be used while two groups hold it.
//
// # Groups and pools that Berth makes
//
// Ensure makes volume groups of disks that package device has proved to be empty, and thin pools
// in the groups. It tags both with their names, and grows only those that bear that tag. It
// extends a thin pool of others only on an explicit request for the extension. Each step is one
// LVM process, chosen from a fresh report, and leaves the group in a state that can be compared
// with a wish. Ensure removes nothing and makes nothing smaller. A process may write to a disk
// just after the disk was proved to be empty. LVM asks before it takes a disk that bears a
// signature. Berth gives no answer, which LVM takes as no.
//
// A process that ends during vgcreate can leave a physical volume without a group. Such a disk is
// not empty any more, and Berth does not use it until it is cleared: it looks like a disk that an
// administrator has just taken out of a group or is about to put into one.
//
// # State without processes
//
// The provisioner caches LVM's own report, which takes one process for all volume groups. Its own
// operations then keep the cache up to date. LVM numbers every change of a volume group (seqno).
// A report is applied only if it is not older than the cache. After a change by Berth the number
// on the disk must have grown by as much as LVM counts for the change: two for making or removing
// a thin volume or any snapshot of LVM's, one for all thick volumes that are removed together,
// else one. Otherwise others changed the group, too. The group then stays due to be read until
// Berth applies an answer that was requested after it noticed this (package reading). Free space
// is never stored: it is the total, less the space that others use, less the volumes and the
// snapshots.
//
// So a create, a delete, an expansion or a thin snapshot costs one LVM process. A thin copy that
// is larger than its source costs two. Format costs one besides mkfs, and a lookup none. Removals
// that wait in one pool share one process. The caller of a thick copy waits for one or two. No
// caller waits for the other processes, which run in the background: one to remove a wiped
// volume, and one to three more for a thick copy. Berth notices changes by others without
// polling: it watches the physical volumes for writers that close them.
//
// # Thin pools
//
// The figures of a thin pool are promises: virtual sizes. The part of the pool that holds data is
// its fill. Berth asks the kernel for the fill and the pool's mode, by ioctl without a process:
// whenever LVM reports, before and after every own change of the pool, and every ten seconds
// while there are thin pools. A change is signalled when the fill has moved by a hundredth since
// the last signal. Nothing new is placed in a pool that does not work, whose fill the kernel does
// not tell, or that hands out blocks without zeroing them, which would show one tenant the data
// that another deleted. Volumes that exist in it stay in use.
//
// # Snapshots and copies
//
// A snapshot of a thin volume is a thin snapshot of LVM's, named and tagged by its own id as a
// volume is. It is read-only, and Berth never activates it. LVM suspends the volume while it
// takes the snapshot, which freezes a mounted filesystem. A copy is a writable thin snapshot, of
// a snapshot or directly of a volume. Neither depends on its source. Each may come to hold data
// of its full size, and that size is promised to it as to a volume.
//
// If a copy must be larger than its source, a second LVM process extends it. The first one
// records the required size, so a copy that is found smaller has not been used yet. Until it is
// extended it counts with the size it was promised and is listed as being copied. The next
// request for it extends it, or else Berth does so when it starts again, or within half a minute.
//
// # Thick copies
//
// A snapshot or a copy of a thick volume is a logical volume of its own. Berth fills it byte by
// byte in the background, one at a time in each group. Its data is fixed before it is made: by a
// snapshot, which nothing changes, or else by a copy-on-write snapshot of LVM's of the volume.
// LVM suspends the volume for that as for a thin snapshot. A copy-on-write snapshot has room for
// all of the volume, so it cannot overflow. It is counted as foreign. Once the copy is whole,
// Berth makes it a plain logical volume again and wipes it, since it holds a tenant's data.
//
// Until it is whole a copy bears another tag, by which an older Berth takes it for foreign. After
// a crash it is filled from the beginning. If its data is lost before that, Berth reports it and
// never fills the copy with later data. Before Berth writes anything it opens the copy
// exclusively and reads the group's number on the disk: a process that is ending may have made
// the copy whole, and a pod may use it.
//
// # Wiping
//
// The next thick volume on the same extents could read the data of a removed one. So Delete does
// not remove a thick volume, unless its record says otherwise. One change of the group replaces
// its tag. Then the volume is gone, but its name and its room stay taken. Run wipes it (package
// wipe), one at a time in each group and with the device opened exclusively, and removes it only
// then. A tag records from time to time how many bytes were overwritten, and after a restart Run
// continues behind them. A volume that cannot be wiped is kept, and Run tries again. Run stops
// once an administrator has made the logical volume a volume again.
//
// # Device nodes
//
// A device node is no proof of a volume. In a container LVM makes the nodes itself. The machine's
// LVM leaves nodes to udev, and does not remove them when it deactivates such a volume. A node
// then leads to no device, or to the next device that gets the number. So Berth uses only the
// device with the name and the UUID that LVM reported, and checks both on the open device. Berth
// has a node made anew that leads elsewhere: it activates the volume, or else tells LVM to make
// the nodes.
//
// # Failure
//
// Berth decides nothing by the text of an LVM message. When a change fails, Berth reads the group
// again and decides by the facts: the volume is there, or gone, or there is no room, or the group
// is missing. Any other failure is transient and carries the message.
//
// An LVM command that dies can leave the device suspended that it was changing, or a thin pool
// with all of its devices. The pods that use it then wait. Berth resumes it after a change that
// failed, when Berth starts again, or else within half a minute. It resumes it with the table
// that LVM has recorded, and first drops a table that was loaded and perhaps never recorded. A
// device that cannot be resumed is reported as a problem.
//
// A volume group that blocks does not block the others: changes are ordered per group, reports
// have a time limit, and when the report of all groups exceeds it Berth asks for each group on
// its own.
package lvm
