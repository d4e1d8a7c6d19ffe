// Command lvm simulates LVM on a machine whose kernel has no device mapper, with
// fixed delays. It is only for measuring everything around LVM, on a native node of the
// lab: it keeps no promise that a volume manager makes about crashes.
//
// The simulated LVM of the tests, lvmtest.Host, answers the commands. Before each command this
// program reads the groups from the machine, and afterwards it changes the machine accordingly.
//
// A volume group has one physical volume, a loop device with a label and
// metadata as LVM writes them, so that Berth finds the sequence number where it
// looks for it. A comment in that metadata holds the contents of the group. A logical
// volume is a sparse file on a loop device of its own. The kernel has no
// device-mapper name for it. So the command mounts a directory that has one over
// /sys/dev/block, in the mount namespace that uses the volume.
package main
