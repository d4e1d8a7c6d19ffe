// Package replica is what all backends of provision.Replicator have in common: the record of a copy,
// and the changes of it as functions of values.
//
// The record says which points, branches and holds count, and in which numbered place the backend
// keeps the data of each point. A backend makes a place, writes it to the disk, and then writes the
// record that names it. So a change is made at once when the record is written, and a place that no
// record names is left over: see Record.Leftover. A number is never used for two places.
//
// A record is written as JSON. Fields that this version does not know are kept, so that an older
// agent loses nothing that a newer one wrote.
package replica
