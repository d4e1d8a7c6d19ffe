// Package decide holds the form of the decisions of Berth's processes. Packages that decide
// elsewhere (guard, replicate/cert/issue, quarantine) use the form, too. The packages below it hold
// the other decisions:
//
//	replica    what a node does next about its replica of a volume
//	snapshot   what a node does next about a snapshot
//	placed     what these two decide alike
//	orphan     whether data without an object may be deleted
//	wish       which pools are to exist on a node, and of which disks
//	notice     which events a node's report deserves
//	attach     where the attachments of shared disks go
//	gone       what happens to a claim whose Node was deleted
//	entries    which reason the error of a step gets, and how an entry is written
//
// A decision is a function of values. It reads neither the cluster nor the machine nor a clock,
// it writes nothing and starts nothing; the linter enforces that. The shells gather the facts,
// ask for the decision, and carry it out. A shell that was killed gathers the facts again, and
// the same decision follows.
package decide
