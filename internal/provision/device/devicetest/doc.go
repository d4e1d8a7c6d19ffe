// Package devicetest plays a machine's disks in memory: their content, the kernel's
// description of them, and the programs that have them open. It can end a process at every
// write. It also makes real disks empty.
package devicetest
