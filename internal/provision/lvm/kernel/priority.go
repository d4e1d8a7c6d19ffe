package kernel

import (
	"runtime"

	"golang.org/x/sys/unix"
)

const (
	ofThread = 1 // this thread, of which the id is 0
	// lowest is the last of the levels that still have their share: a copy that starves
	// slows its volume down for ever.
	lowest = 2<<13 | 7
)

// behind does input and output that may wait for everybody else's. A kernel or a disk that
// knows no priorities does it all the same.
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
