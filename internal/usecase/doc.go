// Package usecase holds the common parts of the use cases of volumes and of snapshots.
//
// Both write a request into an object and wait for the reports of its nodes there. An
// object keeps its finalizer for its nodes: only a node itself can let go of data
// that it has, or may have. Nothing here knows which of the two kinds it works on.
package usecase
