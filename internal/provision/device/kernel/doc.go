// Package kernel is what the running kernel tells of a machine's whole disks, by
// sysfs, and the system calls that read and change them.
package kernel
