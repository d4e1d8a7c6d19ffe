// Package mkfs knows how filesystems are made: the options of mkfs.ext4 and
// mkfs.xfs that are safe in anybody's StorageClass, and the arguments that come of
// them.
//
// What is not on the list is refused. An option may shape a filesystem; it may not
// name a device or a file, leave out what keeps data whole (the journal, checksums of
// xfs), give a filesystem an identity, or make one that cannot grow.
//
// Everything here is a function of strings: the same list serves the controller,
// which refuses a claim before anything is made, and the node, which runs the tool.
package mkfs
