// Package guesttest tests volumes in zpools on real ZFS, in guests. The name of each file begins
// with its suite, and each suite runs in a guest of its own:
//
//   - manage: zpools that Berth makes of disks
//   - faults: the effect of a loss of power on volumes
//   - replicas: copies of volumes, between two zpools
//
// The zpool of the faults is on a disk of package faultydisk, which logs all writes of a life of volumes.
// Afterwards the tests restore the disk as it was at a moment, import the zpool as after a boot,
// and have a new provisioner go on. The effects of all answered requests must be there, with the
// data that was written durably. An unanswered request is completed, or its leftovers are
// removed, when it is made again.
//
// An import finds another state only after a write of an uberblock, which makes a whole group of
// changes valid. So the moments are those behind the first uberblock of each group, and those at
// which a step was answered: an answer must hold at once, and data that was written durably may
// then be only in ZFS's intent log. To try every write, as for LVM, would import the same state
// many times.
//
// ZFS makes a volume in several groups: the dataset, its room, its record. A volume grows in two.
// With few rounds half of the moments are in the middle of such steps.
package guesttest
