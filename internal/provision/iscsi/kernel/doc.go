// Package kernel is the machine's kernel as package iscsi needs it: sessions and disks out of sysfs,
// and commands for a device through SG_IO on its open descriptor.
package kernel
