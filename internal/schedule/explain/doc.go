// Package explain says for people where a pod's volumes fit and why not
// elsewhere, with the figures that the ledger reckons with. What schedulers hold
// in memory for pods in flight is not among them.
package explain
