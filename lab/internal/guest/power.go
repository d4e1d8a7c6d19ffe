package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/lab/internal/guest/qmp"
	"berth.dev/berth/lab/internal/guest/tsc"
	"berth.dev/berth/lab/internal/process"
)

// Power is the state of a machine.
type Power string

// The states of a machine.
const (
	Off    Power = "off"
	On     Power = "on"
	Paused Power = "paused"
)

// Power returns the machine's state.
func (m *Machine) Power() Power {
	switch {
	case !m.Process.Alive():
		return Off
	case isStopped(m.Process.PID):
		return Paused
	default:
		return On
	}
}

// PowerOn starts the machine, and does nothing if it is on already. It returns
// when QEMU runs: see [Machine.WaitReady].
func (m *Machine) PowerOn(ctx context.Context) error {
	if m.Process.Alive() {
		return nil
	}
	if err := m.endLost(ctx); err != nil {
		return fmt.Errorf("powering on %s: %w", m.Spec.Name, err)
	}
	if err := os.Remove(filepath.Join(m.dir, readyFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("powering on %s: %w", m.Spec.Name, err)
	}
	port, err := freePort(m.Spec.NetNS)
	if err != nil {
		return fmt.Errorf("powering on %s: choosing a port: %w", m.Spec.Name, err)
	}
	args, err := qemuArguments(m.Spec, m.Plan, m.dir, start{execPort: port, tscKHz: tsc.KiloHertz()})
	if err != nil {
		return fmt.Errorf("powering on %s: %w", m.Spec.Name, err)
	}
	started, err := process.Start(ctx, process.Spec{
		Name: m.Spec.Name, Path: qemuProgram, Args: args,
		Dir: m.dir, Log: filepath.Join(m.dir, qemuLog), NetNS: m.Spec.NetNS,
	})
	if err != nil {
		return fmt.Errorf("powering on %s: %w", m.Spec.Name, err)
	}
	m.Process, m.ExecPort = started, port
	return m.save()
}

// PowerOff ends the machine at once, as a pulled plug does. It works on paused
// machines, too, and does nothing if the machine is off.
func (m *Machine) PowerOff(ctx context.Context) error {
	if err := m.Process.Stop(ctx, 0); err != nil {
		return fmt.Errorf("powering off %s: %w", m.Spec.Name, err)
	}
	if err := m.endLost(ctx); err != nil {
		return fmt.Errorf("powering off %s: %w", m.Spec.Name, err)
	}
	return nil
}

// Pause stops the machine. For others it is silent. The machine itself does not notice,
// except that time has jumped when it is resumed. Pause returns when the machine stands still: the
// kernel stops the threads of a busy process one after the other.
func (m *Machine) Pause(ctx context.Context) error {
	if err := m.signal("pausing", syscall.SIGSTOP); err != nil {
		return err
	}
	for !isStopped(m.Process.PID) {
		if !m.Process.Alive() {
			return fmt.Errorf("pausing %s: %w", m.Spec.Name, os.ErrProcessDone)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("pausing %s: %w", m.Spec.Name, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// Freeze stops the machine with all its clocks, as a hypervisor's suspension does. QEMU stops
// the virtual processors, and with them the time stamp counter and the timers from which the
// guest's kernel makes CLOCK_MONOTONIC, CLOCK_BOOTTIME and CLOCK_REALTIME: after
// [Machine.Resume] the guest's clocks go on from where they were, so its real time is behind.
// Only the emulated clock on the mainboard follows the host, and a kernel reads that at boot.
func (m *Machine) Freeze(ctx context.Context) error {
	if m.Power() != On {
		return fmt.Errorf("freezing %s: it is %s", m.Spec.Name, m.Power())
	}
	err := m.monitor(ctx, func(ctx context.Context, c *qmp.Client) error { return c.Execute(ctx, "stop", nil, nil) })
	if err != nil {
		return fmt.Errorf("freezing %s: %w", m.Spec.Name, err)
	}
	return m.Pause(ctx) // so that it is seen as paused
}

// Resume undoes [Machine.Pause] and [Machine.Freeze], and continues a machine that QEMU has stopped.
func (m *Machine) Resume(ctx context.Context) error {
	if err := m.signal("resuming", syscall.SIGCONT); err != nil {
		return err
	}
	err := m.monitor(ctx, func(ctx context.Context, c *qmp.Client) error { return c.Execute(ctx, "cont", nil, nil) })
	if err != nil {
		return fmt.Errorf("resuming %s: %w", m.Spec.Name, err)
	}
	return nil
}

// ErrStopped says that QEMU has stopped a machine because it could not write to its disks.
var ErrStopped = errors.New("it is stopped since there is no room for its disks: make some, then `lab resume` it")

// stopped asks QEMU why a machine does not answer. The guest itself notices nothing.
func (m *Machine) stopped(ctx context.Context) error {
	var status struct{ Status string }
	err := m.monitor(ctx, func(ctx context.Context, c *qmp.Client) error {
		return c.Execute(ctx, "query-status", nil, &status)
	})
	if err == nil && status.Status == "io-error" {
		return fmt.Errorf("%w (%s)", ErrStopped, m.dir)
	}
	return nil // nothing is known beyond the silence
}

func (m *Machine) signal(verb string, sig syscall.Signal) error {
	err := m.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s %s: it is powered off", verb, m.Spec.Name)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, m.Spec.Name, err)
	}
	return nil
}

// endLost ends a QEMU process of this machine that was started but not
// recorded, because the lab died in between. The process that listens on the
// machine's own socket is that process; the kernel knows its pid.
func (m *Machine) endLost(ctx context.Context) error {
	socket, closeDir, err := m.socket()
	if err != nil {
		return fmt.Errorf("looking for a lost QEMU process: %w", err)
	}
	defer func() { _ = closeDir() }()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for a lost QEMU process: %w", err)
	}
	defer conn.Close()
	peer, err := peerOf(conn.(*net.UnixConn))
	if err != nil {
		return fmt.Errorf("looking for a lost QEMU process: %w", err)
	}
	namespace := m.Spec.NetNS
	if namespace == "" {
		namespace = "/proc/self/ns/net"
	}
	candidates, err := process.InNamespace(namespace)
	if err != nil {
		return fmt.Errorf("looking for a lost QEMU process: %w", err)
	}
	for _, lost := range candidates {
		if lost.PID == peer {
			return lost.Stop(ctx, 0)
		}
	}
	return nil
}

// socket returns a path of QEMU's socket that is valid until closeDir is called.
// The real path may be longer than the 107 bytes that the kernel allows.
func (m *Machine) socket() (path string, closeDir func() error, err error) {
	dir, err := os.Open(m.dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), qmpSocket), dir.Close, nil
}

func peerOf(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	if controlErr := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); controlErr != nil {
		return 0, controlErr
	}
	if err != nil {
		return 0, err
	}
	return int(peer.Pid), nil
}

// isStopped reports whether SIGSTOP holds the process.
func isStopped(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && strings.Contains(string(data), "\nState:\tT")
}

// freePort returns a port of 127.0.0.1 that no process listens on. Another process may
// take it before QEMU does; then QEMU ends at once and says so in its log.
func freePort(netns string) (int, error) {
	port := 0
	listen := func() error {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return err
		}
		port = l.Addr().(*net.TCPAddr).Port
		return l.Close()
	}
	var err error
	if netns == "" {
		err = listen()
	} else {
		err = process.InNetNS(netns, listen)
	}
	return port, err
}
