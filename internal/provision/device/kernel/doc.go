// Package kernel describes a machine's whole disks, as the running kernel tells of them in
// sysfs, and has the system calls that read and change them.
package kernel
