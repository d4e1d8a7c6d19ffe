// Package kernel is what Linux shows of ZFS without a process: zpools in the files
// of its statistics, and zvols as block devices that tell their names.
package kernel
