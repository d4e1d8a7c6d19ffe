// Package snapshots takes, deletes and lists snapshots of volumes, as package
// volumes does volumes: what is wanted is written into the Snapshot object, and the
// node's answer is heard from the informer's events. Every call can be cut off
// anywhere and made again.
//
//	use case  call made for the first time         call repeated
//	Create    create                               none
//	          and a delete, if the node refused    none, or a create once that is done
//	Delete    delete                               none
//
// A snapshot is taken where its volume is. It does not need the volume afterwards:
// either may be deleted before the other.
//
// None is taken where another place keeps one of its name that has no object: that is the one, and
// the API server comes from an older backup. Where it is to be taken the node uses what it has.
package snapshots
