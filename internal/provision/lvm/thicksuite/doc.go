// Package thicksuite holds snapshots and copies of thick volumes to the conformance suite,
// and to what is particular to them, on real LVM: platform tests in a guest of their own.
package thicksuite
