// Package managetest tests volume groups and thin pools that Berth makes, on real LVM and
// real disks.
package managetest
