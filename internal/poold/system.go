package poold

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/kernel"
	"berth.dev/berth/internal/run"
)

// SystemConfig says how the machine's tools are used.
type SystemConfig struct {
	// Udev says that udev runs beside this process and makes the device nodes, as on
	// a host. In a container LVM makes them itself.
	Udev bool
	// Runner starts the tools; run.Exec by default.
	Runner run.Runner
}

// System is the Node of this machine: LVM, and mounts by Linux. It needs root.
type System struct {
	*lvm.Provisioner
	*linux.Mounter
}

var _ Node = System{}

// NewSystem makes the Node of this machine. It starts nothing; Run watches the
// disks.
func NewSystem(c SystemConfig) (System, error) {
	if c.Runner == nil {
		c.Runner = run.Exec{}
	}
	mounter, err := linux.New(linux.Config{Runner: c.Runner})
	if err != nil {
		return System{}, err
	}
	provisioner, err := lvm.New(lvm.Config{Runner: c.Runner, Devices: kernel.Devices{}, Mkfs: mounter.Mkfs, Udev: c.Udev})
	if err != nil {
		return System{}, err
	}
	return System{provisioner, mounter}, nil
}

// Run watches for changes by others until ctx ends, then waits for what is under
// way: a storage command is not cut short.
func (s System) Run(ctx context.Context) error {
	defer s.Mounter.Wait()
	if err := s.Provisioner.Run(ctx); err != nil {
		return fmt.Errorf("watching volume groups: %w", err)
	}
	return nil
}

// Wait returns when no change is under way.
func (s System) Wait() {
	s.Provisioner.Wait()
	s.Mounter.Wait()
}
