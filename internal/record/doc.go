// Package record converts between the Volume object of the API and the record that
// internal/ownership decides about, in both directions.
//
// It is pure. The caller reads the object, uncached, and hands the outcome to Read; it asks the
// rules, and writes what Into returns by a PUT of the status. The object keeps the resourceVersion
// that was read, so that the write fails if another process was faster.
//
// Three outcomes are not a record, and each has a type of its own, so that none can pass for
// another:
//
//	*AbsentError   the API answered that there is no record. Only this is NodeFacts.Absent.
//	*UnreadError   the record could not be read: an error, or a value that no rule wrote
//	*OneCopyError  the volume has one copy, and its node owns it by holding it
//
// The object's spec has the parameters (kind, factor, failover, attachments), status.ownership has
// everything that the rules decide, and the deletion timestamp is the decision to destroy the data.
package record
