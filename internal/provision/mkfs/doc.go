// Package mkfs has the list of those options of mkfs.ext4 and mkfs.xfs that are safe in
// any StorageClass, and turns them into the arguments of the tool.
//
// An option that is not on the list is refused. An option may shape a filesystem. It may
// not name a device or a file, leave out a protection of data (the journal, checksums of
// xfs), give a filesystem an identity, or make one that cannot grow.
//
// Everything here is a function of strings: the same list serves the controller,
// which refuses a claim before anything is made, and the node, which runs the tool.
package mkfs
