//go:build platform

package guesttest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

const module = "/sys/module/dm_thin_pool"

// contained runs commands as in a container: they do not see modprobe, but the kernel does.
type contained struct{ run.Runner }

func (c contained) Change(command run.Command) (out []byte, err error) {
	return c.within(func() ([]byte, error) { return c.Runner.Change(command) })
}

func (c contained) Query(ctx context.Context, command run.Command) ([]byte, error) {
	return c.within(func() ([]byte, error) { return c.Runner.Query(ctx, command) })
}

// within runs something in a mount namespace of its own. A thread that is locked and not
// unlocked ends with its goroutine, and the namespace with it.
func (contained) within(do func() ([]byte, error)) (out []byte, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		err = errors.Join(
			unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS),
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("/dev/null", "/sbin/modprobe", "", unix.MS_BIND, ""),
		)
		if err == nil {
			out, err = do()
		}
	}()
	<-done
	return out, err
}

// unload takes the module out of the kernel.
func unload(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(module); errors.Is(err, fs.ErrNotExist) {
		return
	}
	if _, err := (run.Exec{}).Change(run.Command{Operation: "rmmod", Program: "rmmod", Args: []string{"dm_thin_pool"}}); err != nil {
		t.Fatal(err)
	}
}

func TestAThinPoolIsActivatedThoughNothingInTheContainerCanLoadItsModule(t *testing.T) {
	pool := thinPool(t, 64)
	lvmtest.EmptyAfter(t, pool.Name)
	c, _, _ := lvmtest.RealConfig(t)
	p, stop := lvmtest.Start(t, c)
	v := made(t, p, request(pool, "pvc-1", 32))
	stop()
	lvmtest.LVM(t, "vgchange", "--activate", "n", "vg-berth")
	unload(t)

	c.Runner = contained{c.Runner}
	activate := run.Command{Operation: "lvchange", Program: "lvm", Args: []string{"lvchange", "--yes", "--activate", "y", "vg-berth/pvc-1"}}
	if _, err := c.Runner.Change(activate); err == nil || !strings.Contains(err.Error(), "support missing from kernel") {
		t.Fatalf("LVM alone: %v; the test does not play a container", err)
	}
	p, _ = lvmtest.Start(t, c)
	if got, err := p.Get(t.Context(), "pvc-1"); err != nil || got.Problem != "" || got.Content.Source != v.Content.Source {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := os.Stat(module); err != nil {
		t.Error(err)
	}
	if v := made(t, p, request(pool, "pvc-2", 32)); v.Problem != "" {
		t.Errorf("made %+v", v)
	}
	if err := p.Delete(t.Context(), "pvc-2"); err != nil {
		t.Error(err)
	}
	eventually(t, p, pool, func(p provision.Pool) bool { return p.Problem == "" }, "the pool has a problem")
}
