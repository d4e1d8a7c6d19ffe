// Package memorytest has harnesses for the conformance suites over disks in memory, for the
// tests of every package that serves such disks.
package memorytest
