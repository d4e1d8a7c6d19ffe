package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/process"
)

// namespaces are the namespaces that a node has of its own.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC

// Power returns the node's state.
func (m *Machine) Power() guest.Power {
	switch {
	case !m.Process.Alive():
		return guest.Off
	case isFrozen(m.Spec.Cgroup):
		return guest.Paused
	default:
		return guest.On
	}
}

// PowerOn starts the node, and does nothing if it is on. It returns when
// process 1 is at work: see [Machine.WaitReady].
func (m *Machine) PowerOn(ctx context.Context) error {
	if m.Process.Alive() {
		return nil
	}
	if err := m.powerOn(ctx); err != nil {
		return fmt.Errorf("powering on %s: %w", m.Spec.Name, err)
	}
	return nil
}

func (m *Machine) powerOn(ctx context.Context) error {
	if err := m.tidy(ctx); err != nil {
		return err
	}
	net, err := m.network(ctx)
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(m.dir, logDir, readyFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := m.attachDisks(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close() // without the line, process 1 ends
	m.Process, err = process.Start(ctx, process.Spec{
		Name: m.Spec.Name, Path: self, Args: []string{"node-init", m.dir},
		Log: m.Logs()["init"], Stdin: in, Namespaces: namespaces,
	})
	in.Close()
	if err != nil {
		return err
	}
	if err := m.save(); err != nil {
		return err
	}
	return m.release(ctx, net, out)
}

// release gives process 1 its network and cgroups, and then the line that it waits for.
func (m *Machine) release(ctx context.Context, net *network.Network, out io.Writer) error {
	if err := net.Cable(ctx, m.Spec.Name, m.Process.PID, m.Spec.Address, m.Spec.MAC); err != nil {
		return err
	}
	if err := enterCgroup(m.Spec.Cgroup, m.Process.PID); err != nil {
		return err
	}
	_, err := io.WriteString(out, "go\n")
	return err
}

// PowerOff ends the node at once. All writes to its disks stay: the lab cannot
// simulate a crash of the kernel, which is the machine's, too.
func (m *Machine) PowerOff(ctx context.Context) error {
	var err error
	if isFrozen(m.Spec.Cgroup) {
		err = endFrozen(ctx, m.Spec.Cgroup)
	}
	if err == nil {
		err = m.Process.Stop(ctx, 0)
	}
	if err == nil {
		err = m.tidy(ctx)
	}
	if net, openErr := m.network(ctx); err == nil && openErr == nil {
		err = net.Unplug(ctx, m.Spec.Name)
	}
	if err != nil {
		return fmt.Errorf("powering off %s: %w", m.Spec.Name, err)
	}
	return nil
}

// tidy removes the loop devices and cgroups that the kernel keeps of a node that is off.
func (m *Machine) tidy(ctx context.Context) error {
	return errors.Join(detachLoops(m.dir), removeCgroup(ctx, m.Spec.Cgroup))
}

// WaitReady waits until the node's services run and it answers.
func (m *Machine) WaitReady(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(filepath.Join(m.dir, logDir, readyFile)); err == nil {
			return nil
		}
		if !m.Process.Alive() {
			return fmt.Errorf("waiting for %s: it ended: %s", m.Spec.Name, m.lastWords())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %s", m.Spec.Name, context.Cause(ctx), m.lastWords())
		case <-tick.C:
		}
	}
}

func (m *directory) lastWords() string {
	path := m.Logs()["init"]
	data, err := os.ReadFile(path)
	if text := strings.TrimSpace(string(data)); err == nil && text != "" {
		return fmt.Sprintf("log %s ends with\n%s", path, text[max(0, len(text)-1000):])
	}
	return fmt.Sprintf("log %s is empty", path)
}

// errShared is the error of operations that only a machine with its own kernel can do.
func (m *Machine) errShared(what string) error {
	return fmt.Errorf("%s is a native node, which %s: use a cluster of guests (lab up without --native)", m.Spec.Name, what)
}

// Pause stops all processes of the node, and all programs in its pods. Its clocks are the
// machine's and go on: after [Machine.Resume] the node sees that time has passed.
func (m *Machine) Pause(ctx context.Context) error { return m.freeze(ctx, "pausing", true) }

// Resume undoes [Machine.Pause].
func (m *Machine) Resume(ctx context.Context) error { return m.freeze(ctx, "resuming", false) }

func (m *Machine) freeze(ctx context.Context, verb string, frozen bool) error {
	err := errors.New("it is powered off")
	if m.Process.Alive() {
		err = freeze(ctx, m.Spec.Cgroup, frozen)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, m.Spec.Name, err)
	}
	return nil
}

// Freeze returns an error: see errShared.
func (m *Machine) Freeze(context.Context) error { return m.errShared("has the clocks of this machine") }

// AddDisk returns an error: see errShared.
func (m *Machine) AddDisk(context.Context, int64) (guest.Disk, error) {
	return guest.Disk{}, m.errShared("has the disks it was made with")
}

// AttachDisk returns an error: see errShared.
func (m *Machine) AttachDisk(context.Context, guest.Disk) error {
	return m.errShared("has the disks it was made with")
}

// RemoveDisk returns an error: see errShared.
func (m *Machine) RemoveDisk(context.Context, string) error {
	return m.errShared("has the disks it was made with")
}
