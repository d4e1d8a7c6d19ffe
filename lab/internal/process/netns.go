package process

import (
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// startIn starts cmd in the network namespace at path, or in the current one
// if path is empty.
//
// A child inherits the namespace of the thread that forks it. So startIn moves a thread
// into the namespace and then ends it: a goroutine that ends while it is locked to its
// thread ends that thread.
func startIn(path string, cmd *exec.Cmd) error {
	if path == "" {
		return cmd.Start()
	}
	return InNetNS(path, cmd.Start)
}

// InNetNS calls f on a thread that is in the network namespace at path. Sockets and
// processes that f opens belong to that namespace; goroutines that it starts do not.
func InNetNS(path string, f func() error) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening network namespace %s: %w", path, err)
	}
	defer unix.Close(fd)
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: see startIn
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			result <- fmt.Errorf("entering network namespace %s: %w", path, err)
			return
		}
		result <- f()
	}()
	return <-result
}
