// Package native makes nodes that are no virtual machines: processes of this
// machine, at its speed and with its kernel, in namespaces of their own.
//
// A node has its own mounts, network, processes, host name and cgroups. Its root
// directory is this machine's, with a layer on top that takes the node's writes.
// Its devices are a few harmless ones and the loop devices over its data
// disks. So it has the programs that the machine has installed, changes nothing
// of the machine, and needs no image.
//
// Process 1 of a node is the lab program itself ([Init]). It waits for a line on
// its standard input before it does anything, and ends without it: a node whose
// start was interrupted before it was recorded is gone. To kill process 1 is to
// power the node off; the kernel then ends all of its processes and drops its
// mounts. The kernel keeps loop devices and cgroups. The lab finds those by the
// node's files and by the name of its cgroup.
//
// A native node shares the kernel: it has no device mapper where the machine has
// none, its clocks cannot stop, and a fault in the kernel hits the whole machine.
package native
