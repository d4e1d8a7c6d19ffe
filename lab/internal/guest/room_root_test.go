//go:build root

package guest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDir returns a directory with room for 96 MiB. grow gives it more.
func smallDir(t *testing.T) (dir string, grow func()) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=96m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir, func() {
		t.Helper()
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=512m"); err != nil {
			t.Fatal(err)
		}
	}
}

// fill writes 128 MiB from a file to the first disk.
func (b booted) fill(from string) (code int, err error) {
	disk := b.Disks()[0].Device("node1")
	return b.Exec(b.t.Context(), ExecRequest{Argv: []string{"dd", "if=" + from, "of=" + disk, "bs=1M", "count=128", "oflag=direct"}})
}

func TestGuestWithoutRoomForItsDisksSaysSoAndGoesOn(t *testing.T) {
	dir, grow := smallDir(t)
	b := bootIn(t, dir, 1)
	filled := make(chan error, 1)
	go func() {
		code, err := b.fill("/dev/urandom")
		if code != 0 {
			err = errors.Join(err, errors.New("the guest saw an error of its disk"))
		}
		filled <- err
	}()
	b.eventually("it is stopped", func() bool { return b.stopped(t.Context()) != nil })
	if _, err := b.Exec(t.Context(), ExecRequest{Argv: []string{"true"}}); !errors.Is(err, ErrStopped) {
		t.Errorf("exec on a guest that is stopped: %v", err)
	}
	grow()
	b.must(b.Resume(t.Context()))
	b.must(<-filled)
}

func TestZerosOnADiskTakeNoRoom(t *testing.T) {
	dir, grow := smallDir(t)
	grow()
	b := bootIn(t, dir, 1)
	taken := func() int64 {
		t.Helper()
		info, err := os.Stat(b.Disks()[0].path(filepath.Join(dir, "node1")))
		b.must(err)
		return info.Sys().(*syscall.Stat_t).Blocks * 512
	}
	for _, step := range []struct {
		from string
		want int64
	}{{"/dev/urandom", 128 << 20}, {"/dev/zero", 0}} {
		if code, err := b.fill(step.from); code != 0 || err != nil {
			t.Fatalf("writing: %d, %v", code, err)
		}
		if got := taken(); got != step.want {
			t.Errorf("with what is in %s it takes %d bytes, want %d", step.from, got, step.want)
		}
	}
}
