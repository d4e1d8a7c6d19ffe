// Package kernel reads facts for the LVM provisioner from the running kernel and the disks,
// without a process: device nodes, mappings and their status, the sequence number in LVM's
// on-disk metadata, and the block devices that a writer has closed.
package kernel
