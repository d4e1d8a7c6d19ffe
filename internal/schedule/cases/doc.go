// Package cases is one table of scheduling questions: a cluster, a pod, and the nodes
// that it fits on. The ledger itself, the extender and the plugin are all tested with
// it, so that they cannot disagree.
package cases
