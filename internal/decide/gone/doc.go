// Package gone decides what happens to a claim whose Node was deleted.
//
// Decide takes one step at a time. It decides by the objects of the API server and by
// the time for which the process has seen the node missing:
//
//	the Node is gone            mark the Volume: NodeGone since now
//	it was gone for the delay   retain the PersistentVolume
//	                            mark the Volume: the claim is about to be deleted
//	                            delete the claim
//	the claim is gone           tell of it, mark the Volume: the claim was released
//	the Node is back            mark the Volume: NodeGone False
//
// A deleted Node object is no proof that data is gone. So nothing that leads to data is
// deleted: not the PersistentVolume, which gets the policy Retain before its claim goes, and
// not the Volume or its finalizer.
//
// # How the delay is counted
//
// The mark is a condition of the Volume, which agents cannot write. Its lastTransitionTime
// says since when the Node is gone or, if that was later (an edited class), since when the
// claim is no longer kept. So the count goes on while no controller runs. The mark alone would
// trust the clocks of two machines, and a mark that came back with an old backup of the API
// server. So the process must have seen the Node missing too, by a clock that does not jump:
// for the whole delay if it wrote the mark itself, else for ten minutes, or for the delay if
// that is shorter. A restart forgets this time, which makes claims stay longer.
//
// # When many nodes are gone
//
// More than three nodes that went lately, or more than half of all, are taken for a mistake: a
// backup without Nodes, or a script that ran in the wrong cluster. Then no claim is released,
// and the marks say so. The delay begins anew when fewer nodes are gone: while the nodes come
// back one after the other, the last three must not be taken for lost.
package gone
