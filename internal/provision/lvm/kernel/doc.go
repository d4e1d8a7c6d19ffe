// Package kernel is what the running kernel and the disks tell the LVM provisioner
// without a process: device nodes, mappings and what those say of themselves, the
// sequence number in LVM's on-disk metadata, and which block devices a writer has closed.
package kernel
