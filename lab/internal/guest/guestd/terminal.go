package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"berth.dev/berth/lab/internal/guest/wire"
)

// runOnTerminal runs cmd on a new terminal: its output and errors are one
// stream, and Control-C in the input interrupts it.
func (s *session) runOnTerminal(cmd *exec.Cmd) int {
	master, slave, err := openTerminal()
	if err != nil {
		return s.fail(err)
	}
	defer master.Close()
	resize := func(w wire.Window) {
		size := [4]uint16{w.Rows, w.Columns}
		_ = ioctl(master, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	}
	resize(*s.request.Window)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	slave.Close()
	if err != nil {
		return s.fail(err)
	}
	s.reader.Go(func() { s.readClient(cmd.Process.Pid, keepOpen{master}, resize) })
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(s.out.Stream(wire.Stdout), master) // ends with EIO when the last user of the slave is gone
	}()
	code := s.wait(cmd)
	_ = master.SetReadDeadline(time.Now().Add(lingerTime))
	<-copied
	return code
}

// keepOpen ignores the end of input: a terminal has none.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// openTerminal returns both ends of a new pseudo terminal.
func openTerminal() (master, slave *os.File, err error) {
	// Non-blocking, so that reads can have a deadline.
	fd, err := syscall.Open("/dev/ptmx", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("opening a terminal: %w", err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	var number, unlock uint32
	if err = ioctl(master, syscall.TIOCGPTN, unsafe.Pointer(&number)); err == nil {
		err = ioctl(master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
		return nil, nil, fmt.Errorf("opening a terminal: %w", err)
	}
	return master, slave, nil
}

func ioctl(f *os.File, request uintptr, argument unsafe.Pointer) error {
	control, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno syscall.Errno
	if err := control.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(argument))
	}); err != nil {
		return err
	}
	if errno != 0 {
		return errno
	}
	return nil
}
