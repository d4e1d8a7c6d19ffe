// Package group interprets LVM's report and decides what is to be done next in a volume group. It
// only computes: it starts no process, reads no clock and takes no lock.
//
// Parse and Sift turn a report into Facts, and set apart the groups that a pod may have written.
// Facts.Pool, Facts.View and Facts.ViewSnapshot show the Facts to other packages. A Planner
// returns the next Step of a request. A Step is one process of LVM, with its effect on the Facts.
// A Wish is the request of a PoolClass, and returns the next Intent.
package group
