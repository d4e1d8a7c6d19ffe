//go:build platform

package holders

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAThreadHasTheFilesOfItsProcessUntilItHasItsOwn(t *testing.T) {
	onAThread(func() {
		same := func() bool { return kernel{}.sameFiles(os.Getpid(), unix.Gettid()) }
		if !same() {
			t.Error("a thread that shares its files is looked at again")
		}
		if err := unix.Unshare(unix.CLONE_FILES); err != nil {
			t.Error(err)
		}
		if same() {
			t.Error("the files that a thread alone has are not looked at")
		}
	})
	if (kernel{}).sameFiles(os.Getpid(), 1<<22) { // no process has this number
		t.Error("a thread that has ended shares files")
	}
}

// onAThread calls f on a thread that ends afterwards, and is not the process's first.
func onAThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			f()
			return
		}
		onAThread(f) // this one is taken meanwhile
		runtime.UnlockOSThread()
	}()
	<-done
}
