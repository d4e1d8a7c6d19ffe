// Package simdisk is a shared disk that is simulated: a target with sessions, registrations and a
// reservation, which judges each write when it executes it, and keeps a log of those that it accepted.
//
// The target is one state in memory, for tests that play faults, or a directory that several real
// processes share: a file lock arbitrates between them, each change is on the disk before it counts,
// and a process that dies leaves a state from before or after its change. Nothing else differs.
//
// A disk in a directory can have block devices: a loop device for each node that has it attached, all of
// one file, on one machine. They are for tests, demonstrations and a laboratory. **Writes to such a
// device are not judged**: the reservation refuses the writes of Device alone, and the kernel takes all
// others. Two loop devices of one file have pages of their own, so a node drops its pages when it
// registers, as a node of a real disk does.
//
// A node's writer names its epoch in each write. The target does not read that: it judges by session
// and reservation alone, so the log shows whether an old writer got through.
package simdisk
