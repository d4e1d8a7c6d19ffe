// Package devicetest plays a machine's disks in memory: what is on them, what the
// kernel knows of them, and who has them open. It can end a process at every write. Real
// disks it makes empty.
package devicetest
