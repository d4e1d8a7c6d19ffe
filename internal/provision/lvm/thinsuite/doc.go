// Package thinsuite holds thin volumes, their snapshots and copies to the conformance
// suites on real LVM, with platform tests in a guest of their own: they take minutes there.
package thinsuite
