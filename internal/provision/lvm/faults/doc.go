// Package faults tests logical volumes on real LVM while disks or the power fail. Its platform
// tests run in a guest of their own, because they take minutes there.
//
// The volume group is on a disk of package faultydisk. The tests exchange the disk's table: for
// one that fails all reads and writes, or all writes, or everything behind LVM's metadata, and
// later for the one that works. So a disk fails and heals while the group is in use.
//
// The tests let the power fail at every write of a life. For one write after the other, they
// give the disk the content that it had at that write, drop the state of the kernel, and let a
// new provisioner go on. The disk keeps every write that it has completed, as the disks of the
// lab do. The tests do not cover the losses of a disk with a volatile cache.
package faults
