// Package faults tries what disks do to logical volumes, on real LVM, with platform tests
// in a guest of their own. Below the volume group is a device of the device mapper that the
// tests disturb while the group is in use.
package faults
