// Package faults tries what disks and the power do to logical volumes, on real LVM, with
// platform tests in a guest of their own: they take minutes there.
//
// Below the volume group is a disk of package faultydisk, whose table the tests exchange:
// for one that fails what is read, or written, or lies behind LVM's metadata, and for the
// one that works. So a disk fails and heals while the group is in use.
//
// A power failure is tried at every write of a life. For one write after the other, the disk
// is made what it was when the power failed then, all that the kernel knew is dropped, and a
// new provisioner has to go on. The disk is one that keeps what it has taken, as those of the
// lab are; what one with a volatile cache may lose besides is not tried.
package faults
