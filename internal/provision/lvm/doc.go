// Package lvm provisions logical volumes: thick ones out of a node's volume groups,
// and thin ones out of the thin pools in them.
//
// # What is whose
//
// A volume's identity is kept with the volume: the logical volume bears the
// volume's id as its name and in a tag, and a second tag records the filesystem once
// one was made. Every other logical volume is foreign: counted, never touched. That
// holds for thin pools themselves, which administrators make, grow and repair. Names
// are the group's: a thick and a thin volume of one group cannot share one.
//
// # State without processes
//
// What the provisioner knows comes from LVM's own report, one process for all volume
// groups, and is then kept up to date by its own operations. LVM numbers every change
// of a volume group (seqno): a report is applied only if it is not older than what is
// known, and after an own change the number on the disk must have grown by as much as
// LVM counts for it (two for making and removing a thin volume, else one), or others
// changed the group too and it is read again. Free space is never stored: it
// is the total, less what others use, less the volumes.
//
// So a create, delete or expansion costs one LVM process, Format one more than mkfs,
// and looking up a volume none. Changes by others are noticed by watching the
// physical volumes for writers that close them, without polling.
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
// # Failure
//
// Nothing is decided by the text of an LVM message. When a change fails, the group
// is read again and the facts decide: the volume is there, or gone, or there is no
// room, or the group is missing; what is left is transient and carries the message.
//
// A volume group that blocks blocks itself alone: changes are ordered per group,
// reports have a time limit, and when the report of all groups exceeds it each is
// asked on its own.
package lvm
