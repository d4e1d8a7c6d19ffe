// Package sight is what a controller knows of the nodes from their guards' leases.
//
// It is pure: the caller hands each Lease in, in the order in which one list and watch brings them, and
// asks for the ownership.Leases of a node that it suspects.
//
// It compares no clock of one machine with that of another, and does not rely on how fast a watch is.
// Three facts are enough. A renewal names the version of the Lease that it replaces, so its guard sent it
// after the one before was stored. One watch brings changes in the order in which they were stored. And
// each renewal has the time on its own machine's boot clock, and for how long that machine had no answer
// then. So the second renewal of a node that comes after the suspect's last one was sent after the suspect's
// last one was stored; and what the node's own clock counts from there is a time for which the suspect has
// had no answer either.
package sight
