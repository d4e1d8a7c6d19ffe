// Package manage has the node's pools made and extended as PoolClasses ask for it. After every
// report of the pools, its Worker asks the pool daemon for one step of each wish that package
// decide/wish lists for this node, and keeps how each wish stands. The pool daemon decides on
// fresh facts how far it fulfils a wish (provision.Manager).
//
// No state has to survive a restart: a new process finds classes, disks, pools and
// StorageNode as they are.
package manage
