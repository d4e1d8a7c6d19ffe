//go:build root

package san

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The test's own program is copied into the guest, where it is an initiator: its first
// argument is then the name of the initiator, the second what to do.
func TestMain(m *testing.M) {
	if os.Getenv("BERTH_LAB_INITIATOR") == "" {
		os.Exit(m.Run())
	}
	if err := initiate(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Requests of the kernel's interface for reservations, linux/pr.h.
const (
	iocRegister = 0x401870c8
	iocReserve  = 0x401070c9
	iocPreempt  = 0x401870cb
	iocAbort    = 0x401870cc

	writeExclusive = 1
)

type prRequest struct {
	old, new    uint64
	kind, flags uint32
}

type prReservation struct {
	key         uint64
	kind, flags uint32
}

func initiate(initiator, verb string, args []string) error {
	device, err := deviceOf(initiator)
	if err != nil {
		return err
	}
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", device, err)
	}
	defer unix.Close(fd)
	if verb == "write" {
		return write(fd, args[0])
	}
	var keys []uint64
	for _, a := range args {
		key, err := strconv.ParseUint(a, 16, 64)
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	switch verb {
	case "register":
		// A registration has no type: its flags are where the type of the others is.
		return ioctl(fd, iocRegister, unsafe.Pointer(&prRequest{new: keys[0]}))
	case "reserve":
		return ioctl(fd, iocReserve, unsafe.Pointer(&prReservation{key: keys[0], kind: writeExclusive}))
	case "preempt":
		// The first key is taken from, the second is this session's own. Contrary to the kernel's
		// document, its old_key is the session's own, and its new_key the one to take from.
		return ioctl(fd, iocPreempt, unsafe.Pointer(&prRequest{old: keys[1], new: keys[0], kind: writeExclusive}))
	case "abort":
		return ioctl(fd, iocAbort, unsafe.Pointer(&prRequest{old: keys[1], new: keys[0], kind: writeExclusive}))
	default:
		return fmt.Errorf("unknown verb %q", verb)
	}
}

// ioctl returns an error also for a status of the target, which the kernel returns as a
// positive number.
func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	status, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	if errno != 0 {
		return errno
	}
	if status != 0 {
		return fmt.Errorf("the target answers with status %#x", status)
	}
	return nil
}

// write goes past the page cache: only then the error is this write's own.
func write(fd int, text string) error {
	const block = 4096
	buffer, err := unix.Mmap(-1, 0, block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	copy(buffer, text)
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_DIRECT); err != nil {
		return err
	}
	if _, err := unix.Pwrite(fd, buffer, 0); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return unix.Fsync(fd)
}

// deviceOf returns the disk of the session of an initiator.
func deviceOf(initiator string) (string, error) {
	sessions, err := filepath.Glob("/sys/class/iscsi_session/session*")
	if err != nil {
		return "", err
	}
	for _, s := range sessions {
		name, err := os.ReadFile(filepath.Join(s, "initiatorname"))
		if err != nil || strings.TrimSpace(string(name)) != InitiatorName(initiator) {
			continue
		}
		disks, err := filepath.Glob(filepath.Join(s, "device/target*/*:1/block/*"))
		if err == nil && len(disks) == 1 {
			return "/dev/" + filepath.Base(disks[0]), nil
		}
		return "", fmt.Errorf("the session of %s has disks %v (%v)", initiator, disks, err)
	}
	return "", fmt.Errorf("no session of %s: %w", initiator, syscall.ENODEV)
}

// head returns the beginning of a logical unit as this machine reads it.
func (l LUN) head(n int) (string, error) {
	f, err := os.Open(l.File)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data := make([]byte, n)
	_, err = f.ReadAt(data, 0)
	return string(bytes.TrimRight(data, "\x00")), err
}

// logIn makes a session for each initiator. Each has an interface of open-iscsi of its own.
func logIn(ctx context.Context, run func(context.Context, string) error, initiators ...string) error {
	script := "modprobe iscsi_tcp\n"
	for _, i := range initiators {
		script += fmt.Sprintf(`iscsiadm -m iface -I %[1]s -o new
iscsiadm -m iface -I %[1]s -o update -n iface.initiatorname -v %[2]s
`, i, InitiatorName(i))
	}
	for _, i := range initiators {
		script += fmt.Sprintf("iscsiadm -m discovery -t sendtargets -p 10.77.0.2 -I %[1]s\niscsiadm -m node -I %[1]s --login\n", i)
	}
	return run(ctx, script+"udevadm settle\n")
}
