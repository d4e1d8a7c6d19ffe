// Package zfstest plays a machine with ZFS in memory, for tests: it runs the zfs and
// zpool commands that package zfs uses, and implements the view of its devices.
package zfstest
