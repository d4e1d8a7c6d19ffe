// Package faultydisk makes disks for platform tests whose table can be exchanged: the device
// mapper makes one out of the beginning of a real disk, so that it fails and heals while it
// is in use.
//
// A power failure is tried at moments of a life. While that is lived the disk is one that
// writes down each write in the order in which the disk below had completed it (package
// writelog). Afterwards the disk is made what it was at one moment after the other; what to
// drop of what the kernel knew, and how to go on, is up to the test.
package faultydisk
