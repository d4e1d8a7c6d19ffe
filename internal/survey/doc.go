// Package survey says how the nodes, pools and volumes of a cluster stand, in rows for people and
// programs. The rows are computed from objects that the caller has read: nothing is asked or changed
// here. The room in pools is the ledger's, as the schedulers have it.
package survey
