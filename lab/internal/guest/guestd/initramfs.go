package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"berth.dev/berth/lab/internal/guest/wire"
)

const (
	newRoot     = "/newroot"
	program     = "/run/guestd"
	modulesDir  = "/modules" // *.ko in the order of their names
	diskTimeout = 30 * time.Second
)

// enterRoot is the first function that runs in a guest.
func enterRoot(ctx context.Context) error {
	for _, m := range []mount{
		{"proc", "/proc", "proc", 0, ""},
		{"sysfs", "/sys", "sysfs", 0, ""},
		{"devtmpfs", "/dev", "devtmpfs", 0, ""},
	} {
		if err := m.do(); err != nil {
			return err
		}
	}
	if err := loadModules(modulesDir); err != nil {
		return err
	}
	device, err := waitForDisk(ctx, wire.RootSerial, diskTimeout)
	if err != nil {
		return err
	}
	// noinit_itable: the kernel would fill the sparse image in the background.
	if err := (mount{device, newRoot, "ext4", syscall.MS_NOATIME, "noinit_itable"}).do(); err != nil {
		return err
	}
	if err := (mount{"tmpfs", newRoot + "/run", "tmpfs", 0, "mode=755"}).do(); err != nil {
		return err
	}
	if err := copyProgram("/proc/self/exe", newRoot+program); err != nil {
		return fmt.Errorf("copying guestd: %w", err)
	}
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if err := syscall.Mount(dir, newRoot+dir, "", syscall.MS_MOVE, ""); err != nil {
			return fmt.Errorf("moving %s: %w", dir, err)
		}
	}
	return switchRoot()
}

func switchRoot() error {
	if err := os.RemoveAll(modulesDir); err != nil { // it is memory
		return err
	}
	if err := os.Chdir(newRoot); err != nil {
		return err
	}
	if err := syscall.Mount(".", "/", "", syscall.MS_MOVE, ""); err != nil {
		return fmt.Errorf("moving the root: %w", err)
	}
	if err := syscall.Chroot("."); err != nil {
		return fmt.Errorf("entering the root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return syscall.Exec(program, []string{"guestd", "init"}, []string{
		"PATH=/opt/lab/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root", "LANG=C.UTF-8", "TERM=linux",
	})
}

func loadModules(dir string) error {
	paths, err := filepath.Glob(dir + "/*.ko")
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := loadModule(path); err != nil {
			return fmt.Errorf("loading module %s: %w", filepath.Base(path), err)
		}
	}
	return nil
}

func loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	const finitModule = 313 // x86-64; the syscall package has no name for it
	var none byte
	_, _, errno := syscall.Syscall(finitModule, f.Fd(), uintptr(unsafe.Pointer(&none)), 0)
	if errno != 0 && errno != syscall.EEXIST {
		return errno
	}
	return nil
}

// waitForDisk returns the device of the disk with a serial number.
func waitForDisk(ctx context.Context, serial string, timeout time.Duration) (device string, err error) {
	err = poll(ctx, 10*time.Millisecond, timeout, func() error {
		found := false
		if device, found = findDisk("/sys/block", serial); !found {
			return fmt.Errorf("no disk has the serial number %s", serial)
		}
		return nil
	})
	return device, err
}

func findDisk(sysBlock, serial string) (string, bool) {
	paths, _ := filepath.Glob(sysBlock + "/*/serial")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err == nil && strings.TrimSpace(string(data)) == serial {
			return "/dev/" + filepath.Base(filepath.Dir(path)), true
		}
	}
	return "", false
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
