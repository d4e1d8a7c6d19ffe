//go:build platform

package holders

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/provision/btrfs/btrfstest"
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

// Of a process whose first thread has ended, the kernel shows neither mappings nor mounts by its own number, and a kill
// of its control group passes it over.
func TestAMappedFileHoldsAVolume(t *testing.T) {
	const maps = `import ctypes, os, sys, threading
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
f = os.open('%s', os.O_RDWR)
if libc.mmap(None, ctypes.c_size_t(4096), 3, 1, f, ctypes.c_long(0)) == 2**64 - 1: sys.exit('it cannot be mapped')
os.close(f)
def idles():
  print('up', flush=True)
  sys.stdin.read()
`
	for name, goesOn := range map[string]string{
		"by a process": "idles()",
		"by a process whose first thread has ended": `def later():
  while ') Z ' not in open('/proc/self/stat').read(): pass
  idles()
threading.Thread(target=later).start()
libc.pthread_exit(None)
`,
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			disk := btrfstest.Disk(t, 8<<20)
			h := guard.Holding{Device: numberOf(t, disk), Block: true}
			p := m.start("mapper", own, `exec python3 -c "`+fmt.Sprintf(maps, disk)+goesOn+`"`)
			found, err := m.kernel.scan(h)
			if err != nil || len(found) == 0 || found[0].why != "has mapped it" {
				t.Errorf("found %v, %v", found, err)
			}
			m.stops(h)
			p.killed()
		})
	}
}
