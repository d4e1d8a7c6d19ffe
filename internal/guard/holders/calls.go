package holders

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/mount/linux"
)

// host is the machine as this process sees it: the directories that its kernel fills, and its calls.
type host struct {
	proc, sys, dev string
	calls
}

// calls are the kernel's calls whose answers a test plays.
type calls interface {
	// stat tells of what a link leads to, as far as the kernel knows it already: a filesystem over a network, or
	// of the pod itself, may never answer.
	stat(link string) (unix.Statx_t, error)
	// within asks about a process, and returns errHangs if the answer does not come soon enough.
	within(patience time.Duration, process string, ask func() (string, error)) (string, error)
	open(path string, flags int) (*os.File, error)
	// sameFiles tells whether a thread shares the table of open files with its process. It returns false if the kernel
	// does not say.
	sameFiles(pid, thread int) bool
	// readOnly makes a block device refuse writes, or take them again.
	readOnly(device *os.File, set bool) error
	loop(device *os.File) (*unix.LoopInfo64, error)
	unmount(path string) error
	cover(path string) error
	// await returns when a control group's events have changed, or after a while.
	await(events *os.File, atMost time.Duration) error
}

func thisHost() host { return host{proc: "/proc", sys: "/sys", dev: "/dev", calls: kernel{}} }

// kernel is the kernel below this process.
type kernel struct{}

func (kernel) stat(link string) (st unix.Statx_t, err error) {
	err = unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE, &st)
	return st, err
}

// errHangs says that the kernel does not answer about a process.
var errHangs = errors.New("its memory does not answer; it may wait for a disk or a server that is gone: end it, or restart the machine")

// asked has the processes that are being asked about. One that hangs is so asked about once.
var asked keyed.Locks[string]

func (kernel) within(patience time.Duration, process string, ask func() (string, error)) (string, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errHangs) //nolint:forbidigo // a proof is not called off
	defer cancel()
	unlock, err := asked.Lock(ctx, process)
	if err != nil {
		return "", err
	}
	type answer struct {
		why string
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		defer unlock()
		why, err := ask()
		answered <- answer{why, err}
	}()
	select {
	case a := <-answered:
		return a.why, a.err
	case <-ctx.Done():
		return "", errHangs
	}
}

func (kernel) open(path string, flags int) (*os.File, error) { return os.OpenFile(path, flags, 0) }

// kcmpFiles is KCMP_FILES of linux/kcmp.h.
const kcmpFiles = 2

func (kernel) sameFiles(pid, thread int) bool {
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(pid), uintptr(thread), kcmpFiles, 0, 0, 0)
	return errno == 0 && order == 0
}

func (kernel) readOnly(device *os.File, set bool) error {
	value := 0
	if set {
		value = 1
	}
	return unix.IoctlSetPointerInt(int(device.Fd()), unix.BLKROSET, value)
}

func (kernel) loop(device *os.File) (*unix.LoopInfo64, error) {
	return unix.IoctlLoopGetStatus64(int(device.Fd()))
}

func (kernel) unmount(path string) error { return unix.Unmount(path, unix.UMOUNT_NOFOLLOW) }

func (kernel) cover(path string) error { return linux.Cover(path) }

func (kernel) await(events *os.File, atMost time.Duration) error {
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(events.Fd()), Events: unix.POLLPRI}}, int(atMost.Milliseconds())) //nolint:gosec // a file number
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	return err
}
