// Package nodegone releases the claims of nodes that were deleted, where their PoolClass
// says so (onNodeGone: ReleaseClaims), so that whoever made them can make others on other
// nodes.
//
// Decide takes one step at a time, from what the API server says and what this process
// has seen:
//
//	the Node is gone            mark the Volume: NodeGone since now
//	it was gone for the delay   retain the PersistentVolume
//	                            mark the Volume: the claim is about to be deleted
//	                            delete the claim
//	the claim is gone           tell of it, mark the Volume: the claim was released
//	the Node is back            mark the Volume: NodeGone False
//
// A deleted Node object is no proof that data is gone. So nothing that leads to data is
// deleted: not the PersistentVolume, which has the policy Retain before its claim goes, nor
// the Volume or its finalizer. Each step is a compare-and-swap with the objects that it was
// decided by, read live, and what is left to do can be told from the objects alone: a
// process that is killed between any two steps leaves a state from which the next one goes on.
//
// # How the delay is counted
//
// The mark is a condition of the Volume, which agents cannot write, and its
// lastTransitionTime is since when the Node is gone, or since when the claim is not kept any
// more, if that was later (a class that is edited): a controller that was down counts on.
// That alone would trust the clocks of two machines, and a mark that came back with an old
// backup of the API server. So the process must have seen the Node missing too, by a clock
// that does not jump: for the whole delay, if it has written the mark itself, and else for ten
// minutes, or the delay if that is shorter. What a restart forgets makes claims stay longer.
//
// # When many nodes are gone
//
// More than three nodes that went lately, or more than half of all, are taken for a mistake: a
// backup without Nodes, a script that ran in the wrong cluster. Then nothing is released, the
// marks say so, and the delay begins anew when fewer are gone: nodes that come back one after
// the other must not have the last three taken for lost.
package nodegone
