// Package explain says for people where a pod's volumes fit and why not elsewhere,
// with the figures of the ledger. These do not include the room that schedulers hold
// in memory for pods in flight.
package explain
