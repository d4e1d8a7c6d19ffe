// Package wish decides which pools are to exist on a node: which PoolClass asks for which pool,
// and which disks each pool may take.
//
//   - A disk that matches the classes of two pools goes to neither until it matches only one.
//   - A pool with a layout takes the disks of whole vdevs. The remaining disks wait for more of their size.
//   - If classes ask different things of one pool, the older class counts.
//   - A pool that the node's StorageNode lists, or that Volumes are in, and that is not
//     there is not made anew. Its disks may come back, at a start one after the other,
//     and then there would be two of one name. So a pool is made once. An administrator who
//     wants it made again deletes its volumes and the StorageNode, which deletes no data.
package wish
