// Package linux mounts with Linux system calls (5.12 or later).
//
// The package starts a process only to make, repair or grow a filesystem, and for the
// last two only when the superblock says that there is something to do. Mounting,
// binding and figures need none.
//
// A call that hangs in the kernel on a dead device blocks no other target: operations
// are ordered per target, callers leave when their context ends, and for figures there
// is at most one such call per path.
package linux
