// Package kernel finds ZFS on Linux without starting a process: zpools in the files of
// ZFS's statistics, and zvols as block devices that tell their names.
package kernel
