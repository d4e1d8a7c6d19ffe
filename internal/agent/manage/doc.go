// Package manage has the node's pools made and extended as PoolClasses ask for it.
//
//	Wishes   lists the wishes of the classes for this node, refused ones too: pure
//	Worker   asks the pool daemon for one step of each wish after every report of the
//	         pools, and keeps how each wish stands
//
// The pool daemon decides on fresh facts how far it fulfils a wish (provision.Manager). This
// package decides which class asks for which pool, and which disks each pool may take:
//
//   - A disk that matches the classes of two pools goes to neither until it matches only one.
//   - A zpool takes the disks of whole vdevs. The remaining disks wait for more of their size.
//   - If classes ask different things of one pool, the older class counts.
//   - A pool that the node's StorageNode lists, or that Volumes are in, and that is not
//     there is not made anew. Its disks may come back, at a start one after the other,
//     and then there would be two of one name. So a pool is made once. An administrator who
//     wants it made again deletes its volumes and the StorageNode, which deletes no data.
//
// No state has to survive a restart: a new process finds classes, disks, pools and
// StorageNode as they are.
package manage
