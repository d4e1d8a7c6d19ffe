// Command lvm plays LVM on a machine whose kernel has no device mapper, with
// delays that are chosen: it answers the commands that Berth's LVM provisioner
// gives, and vgcreate. It is for measuring everything around LVM, on a native
// node of the lab, and for nothing else: it keeps no promise a volume manager
// makes about crashes.
//
// A volume group has one physical volume, a loop device with a label and
// metadata as LVM writes them, so that the sequence number is found where Berth
// looks for it; what the group holds is a comment in that metadata. A logical
// volume is a sparse file on a loop device of its own. The kernel tells nobody a
// device-mapper name for it, so a directory of the mount namespace it is used in
// is laid over /sys/dev/block that does.
package main
