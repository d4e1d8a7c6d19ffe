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
// A child inherits the namespace of the thread that forks it, so the thread is
// moved and then thrown away: a goroutine that ends while locked takes its
// thread with it.
func startIn(path string, cmd *exec.Cmd) error {
	if path == "" {
		return cmd.Start()
	}
	return InNetNS(path, cmd.Start)
}

// InNetNS calls f on a thread that is in the network namespace at path. What f
// opens (sockets, processes) belongs to that namespace; goroutines it starts
// do not.
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
