// Package guest runs virtual machines with a kernel of their own, on any
// machine: QEMU emulates the processor in software, so neither hardware
// virtualisation nor a container engine is needed.
//
// # Image
//
// All guests share one read-only [Image]: Debian's cloud kernel, a root
// filesystem made by debootstrap, and an initramfs that holds only disk
// drivers and guestd, the guest's whole system software (see guestd). Each
// guest writes into an overlay of its own, which outlives power cycles. A second
// image also has ZFS, whose modules are built once from Debian's source.
//
// A guest that has booted is as bare as a host. It has loaded the drivers of its disks and
// interfaces. It has the device files by which the kernel loads further modules when a
// program opens them. It runs udev with Debian's rules. A program that needs the device
// mapper, or a target of it, gets it as on any other host.
//
// # Machine
//
// A [Machine] is a directory: machine.json, the overlay, the seed, data disks,
// logs. Any later command opens it again with [Open]. The QEMU process is
// found by the recorded pid and start time.
//
// Power off is a SIGKILL of the QEMU process, pause a SIGSTOP: the guest gets
// no chance to tidy up, as with a real machine. A frozen machine has also its clocks
// stopped, see [Machine.Freeze]. A reset powers a machine off, or boots it again if
// [Spec.Resets] is set. The host keeps all data that the
// guest wrote to a disk, so a power-off is a crash of the machine and not the loss
// of a disk's write cache.
//
// # Disks
//
// Data disks are SCSI, so that inside a guest /dev/sd* are the disks to play
// with and /dev/vd* the machine's own, and so that a disk can be pulled out
// without the guest's consent. They are found under stable names, see
// [Disk.Device]. A disk with a [Disk.File] may be in several machines at once.
//
// # Exec
//
// Programs are run through guestd over an interface of QEMU's own, so that a
// guest that is cut from its network can still be looked at.
package guest
