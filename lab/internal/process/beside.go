package process

import (
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// besideKinds are the namespaces of a native node. The mount namespace is the last: after
// the thread has entered it, paths mean other files.
var besideKinds = []string{"pid", "net", "uts", "ipc", "mnt"}

// startBeside starts cmd in the namespaces of another process. The thread ends with the
// call, see startIn.
func startBeside(pid int, cmd *exec.Cmd) error {
	var namespaces []int
	defer func() {
		for _, fd := range namespaces {
			unix.Close(fd)
		}
	}()
	for _, kind := range besideKinds {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, kind), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("opening a namespace of process %d: %w", pid, err)
		}
		namespaces = append(namespaces, fd)
	}
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		// Threads that share their root directory cannot change their mounts.
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			result <- fmt.Errorf("leaving the program's directories: %w", err)
			return
		}
		for i, fd := range namespaces {
			if err := unix.Setns(fd, 0); err != nil {
				result <- fmt.Errorf("entering the %s namespace of process %d: %w", besideKinds[i], pid, err)
				return
			}
		}
		result <- cmd.Start()
	}()
	return <-result
}
