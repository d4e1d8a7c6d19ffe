package kernel

import (
	"runtime"

	"golang.org/x/sys/unix"
)

const (
	ofThread = 1 // this thread, of which the id is 0
	// lowest is the lowest level of the best-effort class, which still gets its share. The idle
	// class may get none, and a copy that starves slows its volume down for ever.
	lowest = 2<<13 | 7
)

// behind runs do with the lowest priority of input and output, so that all other input and
// output goes first. If the kernel or the disk knows no priorities, it runs do all the same.
func behind(do func() (int, error)) (int, error) {
	runtime.LockOSThread() // the kernel keeps it by thread
	defer runtime.UnlockOSThread()
	before, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, ofThread, 0, 0)
	if errno == 0 && setPriority(lowest) == 0 {
		defer setPriority(before)
	}
	return do()
}

func setPriority(p uintptr) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, ofThread, 0, p)
	return errno
}
