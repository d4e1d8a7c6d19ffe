// Package failover does the work of kubectl berth failover and drain: what a person asks for when a volume
// shall go on at another node.
//
// A failover shuts the writer out at the disk. Plan says what it would do, or why it is refused; Ask writes
// the request into the record, against the version that was read; Progress reads from the record how far it
// has come. The rules of internal/ownership carry it out, and they alone decide that a writer is stopped: a
// person asks for what the rules ask for by themselves once a writer is suspected.
package failover
