// Package snapshots takes, deletes and lists snapshots of volumes. Like package
// volumes it writes the request into the Snapshot object, and gets the node's answer
// from the informer's events. Every call can be cut off anywhere and made again.
//
//	use case  call made for the first time         call repeated
//	Create    create                               none
//	          and a delete, if the node refused    none, or a create once that is done
//	Delete    delete                               none
//
// A snapshot is taken where its volume is. It does not need the volume afterwards:
// either may be deleted before the other.
//
// No snapshot is taken while another place keeps one of its name without an object: that one is
// the snapshot, and the API server was restored from an older backup. In the place itself the
// node uses the one that it has.
package snapshots
