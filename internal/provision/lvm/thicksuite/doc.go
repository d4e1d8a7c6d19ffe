// Package thicksuite runs the conformance suite and special tests for snapshots and copies of
// thick volumes on real LVM. Its platform tests run in a guest of their own.
package thicksuite
