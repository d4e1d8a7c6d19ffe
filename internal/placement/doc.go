// Package placement has what is said about where volumes are: the entry of a
// node, and sizes as people write them. Where volumes go is decided by package
// ledger.
package placement
