// Package lvm provisions thick logical volumes out of a node's volume groups.
//
// # What is whose
//
// A volume's identity is kept with the volume: the logical volume bears the
// volume's id as its name and in a tag, and a second tag records the filesystem once
// one was made. Every other logical volume is foreign: counted, never touched.
//
// # State without processes
//
// What the provisioner knows comes from LVM's own report, one process for all volume
// groups, and is then kept up to date by its own operations. LVM numbers every change
// of a volume group (seqno): a report is applied only if it is not older than what is
// known, and after an own change the number on the disk must have grown by one, else
// others changed the group too and it is read again. Free space is never stored: it
// is the total, less what others use, less the volumes.
//
// So a create, delete or expansion costs one LVM process, Format one more than mkfs,
// and looking up a volume none. Changes by others are noticed by watching the
// physical volumes for writers that close them, without polling.
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
