// Command lvm simulates LVM on a machine whose kernel has no device mapper, with
// fixed delays: it answers the commands that Berth's LVM provisioner gives, and
// vgcreate. It is only for measuring everything around LVM, on a native node of the
// lab: it keeps no promise that a volume manager makes about crashes.
//
// A volume group has one physical volume, a loop device with a label and
// metadata as LVM writes them, so that Berth finds the sequence number where it
// looks for it. A comment in that metadata holds the contents of the group. A logical
// volume is a sparse file on a loop device of its own. The kernel has no
// device-mapper name for it. So the command mounts a directory that has one over
// /sys/dev/block, in the mount namespace that uses the volume.
package main
