// Package pooled gives the Owner of copies (package owner) the copies in this node's pools: a Pools is its
// owner.Pools, over the Replicators of the node's provisioners, and a Streams serves the copies to other nodes
// and fetches from them.
//
//	State    ErrNotFound only if no pool that may hold the volume is away
//	Make     the one way in which a copy is made or grows, as its PoolClass says
//	Destroy  through the provisioner, as any volume
//	Fetch    one stream from another node, by mutual TLS, when the queue has a place for it
//
// Nothing here decides who may write, or which copy counts.
package pooled
