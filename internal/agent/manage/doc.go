// Package manage has the node's pools made and extended as PoolClasses ask for it.
//
//	Wishes   what the classes ask of this node, and what is refused: pure
//	Worker   asks the pool daemon for one step of each wish after every report of the
//	         pools, and keeps how each wish stands
//
// What a wish comes to is decided where the disks are, on fresh facts
// (provision.Manager). Here is decided who asks for what, and which disks are whose:
//
//   - A disk that matches the classes of two pools is nobody's until it matches one.
//   - A zpool takes the disks of whole vdevs. What is left waits for more of its size.
//   - Classes that ask different things of one pool: the older one is heeded.
//   - A pool that the node's StorageNode lists, or that Volumes are in, and that is not
//     there is not made anew. Its disks may come back, at a start one after the other,
//     and then there would be two of one name. So a pool is made once; who wants it made
//     again deletes its volumes and the StorageNode, which deletes no data.
//
// Nothing is remembered: whoever starts anew finds classes, disks, pools and StorageNode
// as they are.
package manage
