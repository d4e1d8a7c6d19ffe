// Package guesttest tests logical volumes on real LVM, in guests. The name of each file begins with
// its suite. A suite takes minutes, so each one runs in a guest of its own:
//
//   - thin: thin pools, and the processes that their operations start
//   - thick: snapshots and copies of thick volumes
//   - conformance: the conformance suites on thin pools
//   - manage: volume groups and thin pools that Berth makes of disks
//   - faults: disks that fail or do not answer, and losses of power
//
// The volume group of the faults is on a disk of package faultydisk. The tests exchange the disk's
// table: for one that fails all reads and writes, or all writes, or everything behind LVM's
// metadata, and later for the one that works. So a disk fails and heals while the group is in use.
//
// They let the power fail at every write of a life. For one write after the other, they
// give the disk the content that it had at that write, drop the state of the kernel, and let a
// new provisioner go on. The disk keeps every write that it has completed, as the disks of the
// lab do. The tests do not cover the losses of a disk with a volatile cache.
package guesttest
