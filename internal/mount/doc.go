// Package mount defines the operations that make a volume's device usable: mounts, bind
// mounts, growth and figures of filesystems.
//
// Mounter is implemented by the linux package with system calls, and by the
// memory package for simulations; both pass the suite in conformance. Making a
// filesystem is not part of it: that destroys data. Only a provisioner may do it, since
// it keeps the record that says a volume is blank.
//
// Every operation is idempotent. The kernel's mount table decides whether an operation
// succeeded, not a tool's exit code.
package mount
