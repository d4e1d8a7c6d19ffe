// Package device provisions whole disks: a volume is a disk, and a disk is a pool of
// one unit.
//
// # Ownership
//
// Berth takes a disk only if it is empty: it has no partition and no holder, and its first
// two MiB and its last are zeros. Berth looks again, with the disk opened exclusively, at
// the moment when it takes the disk. Any other disk is foreign, and Berth never writes to it.
//
// A disk is known by the identity that it reports (its WWN, or its model and serial number),
// so a pool keeps its name whatever the kernel calls the disk today. Berth does not hand out
// a disk that reports no identity, nor two disks that report the same one.
//
// # Content of a disk
//
// A volume is the one partition of a GUID partition table. The partition's name is the
// volume's id, and its type is the volume's state: blank, ext4, xfs, raw, or being wiped.
// A table is five blocks (package gpt). Each is written whole or not at all, and is on the
// disk before the next one is written:
//
//	1 backup entry, 2 backup header, 3 primary entry, 4 boot record, 5 primary header
//
// All blocks follow from the entry. So Berth recognises every state that a crash can leave:
//
//   - A valid table counts. Of two, the one with the later state counts. States only advance.
//   - If none is valid, an entry alone counts, if everything else is zeros or belongs to
//     that entry. That is the state after write 1 only.
//   - Missing blocks are written when the volume is next asked for, and always before the
//     state changes.
//
// A table is removed in the reverse order, with zeros, and so goes through the same states.
// There is no prefix of writes after which a disk is neither empty nor known.
//
// # Wiping
//
// Delete makes the kernel forget the partition, which the kernel refuses while the partition
// is open. Then it changes the state to being wiped, and the volume is gone. Run overwrites
// the data with zeros, or has the disk discard it if the kernel vouches that discarded data
// reads as zeros. Only after that does it remove the table. From time to time Run records in
// the partition's attributes how much is overwritten, and goes on from there after a restart.
// Of two tables it believes the one that says less. A disk that fails stays closed and says
// why.
//
// Berth does not wipe the data that a disk held before Berth took it for the first time:
// blocks that Berth does not look at may bear old data. An administrator who gives a disk to
// Berth has to clear the whole disk.
//
// # State
//
// The facts about the disks are in an engine.Book. A change does not plan by them, as an
// engine.Change does: it decides by what it reads once it has opened the disk exclusively, and it
// holds a disk that is wiped for hours without a lock.
//
// Berth starts no process. Asking the kernel about the disks is cheap, and every report does it.
// Berth reads a disk again when a writer closed it. A disk that does not answer holds up no
// other. A disk that went with a volume on it stays known, so that the volume is not taken
// for deleted.
package device
