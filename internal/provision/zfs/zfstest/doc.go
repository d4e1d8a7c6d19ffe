// Package zfstest is a machine with ZFS made of maps, for tests: it runs the zfs
// commands that package zfs uses, and answers what can be seen of its devices.
package zfstest
