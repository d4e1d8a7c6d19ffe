package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/device"
	devicekernel "berth.dev/berth/internal/provision/device/kernel"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/kernel"
	"berth.dev/berth/internal/provision/zfs"
	zfskernel "berth.dev/berth/internal/provision/zfs/kernel"
	"berth.dev/berth/internal/run"
)

// disks are the pools and mounts of this machine.
type disks struct {
	lvm     *lvm.Provisioner
	zfs     *zfs.Provisioner
	device  *device.Provisioner
	all     *provision.Mux
	mounter mount.Mounter
}

func newDisks(udev bool, observer run.Observer) (*disks, error) {
	runner := run.Exec{Observer: observer}
	mounter, err := linux.New(linux.Config{Runner: runner})
	if err != nil {
		return nil, fmt.Errorf("setting up mounts: %w", err)
	}
	whole, err := device.New(device.Config{Disks: devicekernel.Disks{}, Mkfs: mounter.Mkfs})
	if err != nil {
		return nil, fmt.Errorf("setting up whole disks: %w", err)
	}
	provisioner, err := lvm.New(lvm.Config{Runner: runner, Devices: kernel.Devices{}, Disks: whole, Mkfs: mounter.Mkfs, Udev: udev})
	if err != nil {
		return nil, fmt.Errorf("setting up LVM: %w", err)
	}
	zpools, err := newZFS(runner, mounter, whole)
	if err != nil {
		return nil, err
	}
	all := provision.NewMux(
		provision.Member{Types: []string{provision.LVM, provision.LVMThin}, Provisioner: provisioner},
		provision.Member{Types: []string{provision.ZFS}, Provisioner: zpools},
		provision.Member{Types: []string{provision.Device}, Provisioner: whole},
	)
	return &disks{lvm: provisioner, zfs: zpools, device: whole, all: all, mounter: mounter}, nil
}

// newZFS serves zpools whenever there are some. On a node without ZFS that costs a
// look at one directory of the kernel's now and then.
func newZFS(runner run.Runner, mounter *linux.Mounter, whole *device.Provisioner) (*zfs.Provisioner, error) {
	devices := &zfskernel.Devices{}
	if version := devices.Module(); version != "" {
		ctrl.Log.Info("found the kernel's ZFS", "version", version)
	} else {
		ctrl.Log.Info("the kernel has no ZFS loaded; zpools are served as soon as there are any")
	}
	provisioner, err := zfs.New(zfs.Config{Runner: runner, Devices: devices, Disks: whole, Mkfs: mounter.Mkfs})
	if err != nil {
		return nil, fmt.Errorf("setting up ZFS: %w", err)
	}
	return provisioner, nil
}

// healthy returns why the pools cannot be managed; it names the pool.
func (d *disks) healthy() error {
	return errors.Join(d.lvm.Healthy(), d.zfs.Healthy(), d.device.Healthy())
}

func (d *disks) node() poold.Node { return poold.NewLocal(d.all, d.mounter) }

// run watches the pools until ctx ends.
func (d *disks) run(ctx context.Context) error {
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return d.lvm.Run(ctx) })
	work.Go(func() error { return d.zfs.Run(ctx) })
	work.Go(func() error { return d.device.Run(ctx) })
	work.Go(func() error { return d.all.Run(ctx) })
	return work.Wait()
}
