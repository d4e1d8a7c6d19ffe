// Package zpool makes facts of a report of ZFS, and plans the next steps in a zpool. It decides
// about values: it starts no process, reads no clock and takes no lock.
//
// Parse and New make Facts of a report. Facts.Pool, Facts.View and Facts.ViewSnapshot return the
// Facts in the form that callers see. A Planner returns the Steps that are left of a request; each
// Step is one process of ZFS, with its effect on the Facts. Planner.Leftovers plans steps that no
// request asks for: they remove the leftovers of an earlier change. Case.Judge decides about a
// zpool that a PoolClass asks for.
package zpool
