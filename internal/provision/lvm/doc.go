// Package lvm provisions logical volumes: thick ones out of a node's volume groups,
// and thin ones out of the thin pools in them.
//
// # What is whose
//
// A volume's identity is kept with the volume: the logical volume bears the
// volume's id as its name and in a tag, and a second tag records the filesystem once
// one was made, or that a pod was given the device. Every other logical volume is foreign: counted, never touched. That
// holds for thin pools themselves, which administrators repair, and make and grow unless
// Berth does. Names are the group's: a thick and a thin volume of one group cannot share
// one.
//
// # What pods write
//
// LVM reads what a pod writes to its raw block volume as it reads any disk: a loop device of the
// kubelet's, a zvol, a disk that was handed out. Whether pods write to a device is told by
// what it is to the kernel, never by what is on it (writtenByPods). LVM's own commands are kept from
// such devices by a filter beside the machine's, and what a report holds of them is dropped: a
// device may appear while LVM begins, or be let through by the machine's filter. So it is
// neither pool nor holder, and no command is run on it.
//
// A name alone does not say which group is meant. Two groups of one name are both not believed, and nor is one
// that has the name of another that held volumes: what was known stays known, and nothing is changed. That
// makes names of groups unambiguous wherever a command bears one; LVM itself changes neither of
// two that it sees. An id that two groups hold is of no use until one of them is gone.
//
// # Groups and pools that Berth makes
//
// Ensure makes volume groups of disks that package device has proved to be empty, and thin
// pools in them, and tags them with their names. Only what bears that tag is grown; a thin
// pool of others is extended where its extension is asked for in so many words. Each step
// is one LVM process, decided upon from a fresh report, and brings the group from one
// state that a wish can be held against to another. Nothing is removed or made smaller.
// LVM is not told to take what bears a signature: should somebody write to a disk in the
// moment after it was proved to be empty, LVM asks, and nobody says yes.
//
// A process that ends within vgcreate can leave a physical volume without a group. Such a
// disk is not empty any more and stays out until it is cleared, since it looks like one
// that an administrator has just taken out of a group or is about to put into one.
//
// # State without processes
//
// What the provisioner knows comes from LVM's own report, one process for all volume
// groups, and is then kept up to date by its own operations. LVM numbers every change
// of a volume group (seqno): a report is applied only if it is not older than what is
// known, and after an own change the number on the disk must have grown by as much as
// LVM counts for it (two for making and removing thin volumes and any snapshot, one for all
// thick volumes that are removed together, else one), or others changed the group too and it is read again: until an answer was applied that was
// asked for after that was noticed (package reading). Free space is never stored: it
// is the total, less what others use, less the volumes and the snapshots.
//
// So a create, delete, expansion or thin snapshot costs one LVM process, a thin copy that is
// larger than its source two, Format one more than mkfs, and looking something up none. What
// waits to be removed from one pool is removed by one process. For more nobody waits: one for
// what is wiped, and for a thick copy, which costs one or two while somebody waits, one to
// three more. Changes by others are noticed by watching
// the physical volumes for writers that close them, without polling.
//
// # Thin pools
//
// A thin pool promises: its figures are virtual sizes, and how much of it holds data
// is its fill. Fill and the pool's mode are the kernel's, asked by ioctl without a
// process: whenever LVM reports, around every own change of the pool, and every ten
// seconds while there are thin pools. A change is signalled when the fill has moved by
// a hundredth since the last signal. Nothing new is placed in a pool that does not
// work, whose fill the kernel does not tell, or that hands out blocks unzeroed, which
// would show one tenant what another deleted; volumes that are there go on.
//
// # Snapshots and copies
//
// A snapshot of a thin volume is a thin snapshot of LVM's, named and tagged by its own id
// as a volume is, read-only and never activated by Berth. LVM suspends the volume while it
// is taken, which brings a mounted filesystem to rest. A copy is a writable one, of a
// snapshot or at once of a volume. Neither depends on what it was taken of. Each may come
// to hold all of its size, and is promised that as a volume is.
//
// A copy that is to be larger than its source is extended by a second process. The first
// records how large it must be: one found smaller has not been used yet. It counts with
// the size it was promised, is listed as being copied, and is extended by whoever asks
// for it again, by the next process, or else within half a minute.
//
// # Thick copies
//
// A snapshot or a copy of a thick volume is a logical volume of its own, filled byte by
// byte in the background, one at a time in each group. What it is to hold is fixed before it
// is made: by a snapshot, which nothing changes, or else by a copy-on-write snapshot of
// LVM's of the volume, which suspends that as a thin one does. Such a snapshot has room for
// all of the volume, so it cannot overflow. It is counted as foreign, and is made a plain
// logical volume again and wiped once the copy is whole: what it saved is a tenant's.
//
// Until it is whole a copy bears another tag, by which an older Berth takes it for foreign.
// After a crash it is filled from the beginning. If what it was to hold is lost it is never
// filled with what came later, and says so. Before anything is written the copy is held
// alone and the group's number on the disk is looked at: a process that is ending may have
// made it whole, and somebody may use it.
//
// # Being wiped
//
// What a thick volume held would be on the extents of the next one. So unless its record
// says otherwise, Delete does not remove it: one change of the group turns its tag, and
// then the volume is gone, while its name and its room are taken. Run wipes it (package
// wipe), one at a time in each group and with the device held alone, and removes it only
// then. How much was overwritten is recorded in a tag from time to time, and a restart goes
// on behind that; what fails is kept and tried again.
//
// # Device nodes
//
// A node proves nothing. In a container LVM makes the nodes itself, and the machine's LVM, which
// leaves that to udev, does not take them away when it deactivates a volume: such a node leads
// to nothing, or to what bears the number next. What is used is the device of the name and the
// UUID that LVM reported, proved on the open device. A node that leads elsewhere is made anew, by
// activating the volume or else by telling LVM to make its nodes.
//
// # Failure
//
// Nothing is decided by the text of an LVM message. When a change fails, the group
// is read again and the facts decide: the volume is there, or gone, or there is no
// room, or the group is missing; what is left is transient and carries the message.
//
// An LVM command that dies can leave the device suspended that it was changing, or a thin
// pool with all of its devices, and the pods that use it waiting. That is resumed after a
// change that failed, by the next process, and else within half a minute, with what LVM has
// recorded of it: a table that was loaded and perhaps never recorded is dropped first. What
// cannot be resumed is a problem.
//
// A volume group that blocks blocks itself alone: changes are ordered per group,
// reports have a time limit, and when the report of all groups exceeds it each is
// asked on its own.
package lvm
