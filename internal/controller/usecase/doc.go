// Package usecase is what the use cases of volumes and of snapshots are made of.
//
// Both write what is wanted into an object and wait for what its nodes report
// there. An object's nodes keep its finalizer: whatever a node has, or may have, is
// the node's to let go of. Nothing here knows which of the two kinds it works on.
package usecase
