// Package lvmtest plays LVM for tests: it understands the commands the lvm package
// gives, keeps volume groups in memory and prints reports as LVM does. It states
// Berth's assumptions about LVM; the same suites run against real LVM.
package lvmtest
