// Package faults tries what a loss of power does to volumes in a zpool, on real ZFS, with
// platform tests in a guest of their own.
//
// The zpool is on a disk of package faultydisk, which writes down what a life of volumes
// writes to it. Afterwards the disk is made what it was at a moment, the zpool is imported as
// after a boot, and a new provisioner has to go on: all that was answered is there, with what
// was written durably, and what was not is made or done away with when it is asked for again.
//
// ZFS changes what an import finds with one write alone, that of an uberblock, which makes
// a whole group of changes valid. So the moments are those behind the first uberblock of each
// group, and those at which a step was answered: an answer is good for what it says at once,
// and what was written durably may then be in ZFS's intent log only. To try every write, as for
// LVM, would be to import the same many times.
//
// A volume is made in several groups: the dataset, its room, its record. It grows in two. With
// few rounds half of the moments are in the middle of that.
package faults
