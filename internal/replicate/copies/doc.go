// Package copies joins the streams between nodes with the copies in a node's pools: a Stock and a Sink of
// package stream over a provision.Replicator.
//
// The header of a stream (provision.StreamHeader) travels as the promise of the offer. The stream's own
// words were verified by package stream, so the header must name the same volume, epoch and points.
//
// The bytes go through a pipe, because a Replicator gives it to the kernel or to a program. The end of the
// pipe is what makes a Replicator complete a point: a Sink closes it only in Commit, and cancels the
// Replicator before it closes the pipe of a stream that was given up.
package copies
