// Package cases is one table of scheduling questions: a cluster, a pod, and the
// nodes that it fits on. Every form of the scheduler is held to it - the ledger
// itself, the extender, the plugin - so that they cannot come to disagree.
package cases
