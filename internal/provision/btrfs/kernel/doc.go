// Package kernel asks and changes btrfs by system calls. It starts no process.
//
// The kernel shows every filesystem that is mounted in any mount namespace in /sys/fs/btrfs, with
// its label, its disks, its space and its quotas. Open mounts one of these once more, at no path,
// and works on the descriptor: no other process sees that mount.
package kernel
