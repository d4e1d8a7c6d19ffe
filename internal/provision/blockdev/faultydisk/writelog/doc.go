// Package writelog reads what the device mapper's log-writes target wrote down: every
// write to a device, in the order in which it was completed, and marks that were set
// between them.
//
// See Documentation/admin-guide/device-mapper/log-writes.rst of the kernel. The log
// begins with a block that says how many entries there are. Each entry is a block with
// what was written where, and what was written follows.
package writelog
