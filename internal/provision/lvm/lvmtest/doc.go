// Package lvmtest plays LVM for tests: it understands the commands the lvm package
// gives, keeps volume groups in memory and prints reports as LVM does. It states
// what is assumed of LVM; the same suites run against the real one.
package lvmtest
