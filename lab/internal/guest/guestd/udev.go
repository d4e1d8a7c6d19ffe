package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// udevControl is the socket through which udevadm talks to udev's daemon.
const udevControl = "/run/udev/control"

// startUdev starts udev's daemon with a control socket that listens already, as systemd
// starts it. A daemon that makes its own socket has two races. It may not listen yet when
// udevadm settle asks it: udevadm then waits for nothing and succeeds. And it accepts a
// connection before it asks the kernel for the sender's credentials: a message that
// arrives in between bears none, the daemon hangs up, and udevadm fails with a broken
// pipe. Connections of a socket that passes credentials pass them from the start.
func startUdev(ctx context.Context, path string) error {
	socket, err := listenControl(path)
	if err != nil {
		return err
	}
	defer socket.Close()
	// The daemon takes sockets that name its own process number, which only the process
	// itself knows before it becomes the daemon.
	const script = `LISTEN_PID=$$ LISTEN_FDS=1 exec /lib/systemd/systemd-udevd --daemon`
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.ExtraFiles = []*os.File{socket} // descriptor 3, where the daemon looks
	return runCommand(cmd)
}

// listenControl returns a socket like the one of Debian's systemd-udevd-control.socket.
func listenControl(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("creating the directory of udev's control socket: %w", err)
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("creating udev's control socket: %w", err)
	}
	socket := os.NewFile(uintptr(fd), path)
	for _, step := range []func() error{
		func() error { return syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_PASSCRED, 1) },
		func() error { return syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}) },
		func() error { return os.Chmod(path, 0o600) },
		func() error { return syscall.Listen(fd, syscall.SOMAXCONN) },
	} {
		if err := step(); err != nil {
			socket.Close()
			return nil, fmt.Errorf("listening on udev's control socket %s: %w", path, err)
		}
	}
	return socket, nil
}
