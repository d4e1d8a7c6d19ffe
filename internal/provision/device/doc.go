// Package device provisions whole disks: a volume is a disk, and a disk is a pool of
// one unit.
//
// # What is whose
//
// Berth takes a disk only if it is empty: no partition, nobody who holds it, zeros in
// its first two MiB and its last. That is looked at again, with the disk opened
// exclusively, at the moment it is taken. Anything else is foreign and never written.
//
// A disk is known by what it says of itself (its WWN, or its model and serial number),
// so a pool keeps its name whatever the kernel calls the disk today. A disk that says
// nothing, and two that say the same, are not handed out.
//
// # What is on a disk
//
// A volume is the one partition of a GUID partition table. The partition's name is the
// volume's id, and its type is the volume's state: blank, ext4, xfs, raw, or being wiped.
// A table is five blocks (package gpt), each written whole or not at all, each on the
// disk before the next:
//
//	1 backup entry, 2 backup header, 3 primary entry, 4 boot record, 5 primary header
//
// They all follow from the entry. So whatever a crash leaves is recognised:
//
//   - A valid table counts; of two, the one with the later state. States only advance.
//   - If none is valid, an entry alone counts, given that everything else is zeros or
//     what belongs to that entry. That is the state after write 1 only.
//   - What is missing is written when the volume is next asked for, and always before
//     the state changes.
//
// A table is taken away in the reverse order, with zeros, and so goes through the same
// states. There is no prefix of writes after which a disk is neither empty nor known.
//
// # Being wiped
//
// Delete takes the partition away from the kernel, which refuses while it is open,
// and changes the state to being wiped; then the volume is gone. Run overwrites the
// data with zeros, or has the disk discard it where the kernel vouches that it reads
// as zeros then, and takes the table away only after that. How much was overwritten stands
// in the partition's attributes, from time to time, and a restart goes on behind it; of two
// tables the one is believed that says less. A disk that fails stays closed and says why.
//
// What a disk held before Berth took it for the first time is not wiped: blocks between
// those that are looked at may bear old data. Whoever gives a disk to Berth clears it whole.
//
// # State
//
// No process is started. What the kernel says of the disks is cheap and is asked for at
// every report; what is on them is read again when a writer closed them. A disk that
// does not answer holds up nobody else. A disk that went with a volume on it stays
// known, so that nobody takes the volume for deleted.
package device
