// Package thinsuite runs the conformance suites for thin volumes, their snapshots and copies on
// real LVM. Its platform tests run in a guest of their own, because they take minutes there.
package thinsuite
