package holders

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

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
	// within asks about a thread, and returns errHangs if the answer does not come soon enough.
	within(patience time.Duration, thread string, ask func() (string, error)) (string, error)
	open(path string, flags int) (*os.File, error)
	// sameFiles tells whether a thread shares the table of open files with its process. It returns false if the kernel
	// does not say.
	sameFiles(pid, thread int) bool
	// readOnly makes a block device refuse writes, or take them again.
	readOnly(device *os.File, set bool) error
	loop(device *os.File) (*unix.LoopInfo64, error)
	unmount(path string) error
	// end kills a process, with all of its threads, if it is still the one that is meant.
	end(pid int, still func() bool) error
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

// hanging are the threads about which a question was put that has no answer yet, although it was waited for. They are
// asked about no more until then: each question that hangs has a thread of this process.
var hanging sync.Map

func (kernel) within(patience time.Duration, thread string, ask func() (string, error)) (string, error) {
	if _, hangs := hanging.Load(thread); hangs {
		return "", errHangs
	}
	type answer struct {
		why string
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		why, err := ask()
		answers <- answer{why, err}
		hanging.Delete(thread)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-answers:
		return a.why, a.err
	case <-timer.C:
	}
	hanging.Store(thread, nil)
	select {
	case a := <-answers: // it came in the last moment, and may have been deleted before it was stored
		hanging.Delete(thread)
		return a.why, a.err
	default:
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

func (kernel) end(pid int, still func() bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if !still() {
		return nil
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}

func (kernel) cover(path string) error { return linux.Cover(path) }

func (kernel) await(events *os.File, atMost time.Duration) error {
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(events.Fd()), Events: unix.POLLPRI}}, int(atMost.Milliseconds())) //nolint:gosec // a file number
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	return err
}
