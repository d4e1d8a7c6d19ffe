// Package snaptest holds snapshots and copies of thin volumes to the conformance suite
// on real LVM, with platform tests in a guest of their own: they take minutes there.
package snaptest
