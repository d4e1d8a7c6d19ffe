// Package writes is a log of records on a raw disk: how a writer appends to it, and how a judge who
// knows nothing of Berth tells whether anything that was acknowledged is lost or was overwritten.
//
// Each record has a slot of its own, in order. It names the record before it by its checksum, so a
// record that an old writer put over one of a new writer breaks the chain, although nothing else
// shows it. A writer that begins has a term, which is one more than that of the last record that it
// found: records of an old writer behind those of a new one have a lower term.
//
// The package imports nothing of the product. It would otherwise judge the product by itself.
package writes
