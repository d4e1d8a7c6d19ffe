// Package mount defines what makes a volume's device usable: mounts, bind
// mounts, growth and figures of filesystems.
//
// Mounter is implemented by the linux package with system calls, and by the
// memory package for simulations; both pass the suite in conformance. Making a
// filesystem is not part of it: that destroys data, and only a provisioner, which
// keeps the record that says a volume is blank, may do it.
//
// Every operation is idempotent, and success is what the kernel's mount table
// says, not what a tool's exit code says.
package mount
