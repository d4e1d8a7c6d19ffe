// Package memorytest has harnesses for the conformance suites over disks in memory, for
// all who serve these in one way or another.
package memorytest
