package kernel

import (
	"errors"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func priority(t *testing.T) uintptr {
	t.Helper()
	p, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, ofThread, 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	return p
}

func TestOnlyBackgroundWorkHasTheLowestPriority(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, broken := priority(t), errors.New("a broken sector")
	n, err := behind(func() (int, error) {
		if got := priority(t); got != lowest {
			t.Errorf("it has priority %#x", got)
		}
		return 7, broken
	})
	if n != 7 || !errors.Is(err, broken) {
		t.Errorf("returned %d, %v", n, err)
	}
	if got := priority(t); got != before {
		t.Errorf("afterwards the priority is %#x and not %#x", got, before)
	}
}
