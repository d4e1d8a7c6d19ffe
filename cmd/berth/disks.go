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
	"berth.dev/berth/internal/provision/btrfs"
	"berth.dev/berth/internal/provision/device"
	devicekernel "berth.dev/berth/internal/provision/device/kernel"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/kernel"
	"berth.dev/berth/internal/provision/zfs"
	zfskernel "berth.dev/berth/internal/provision/zfs/kernel"
	"berth.dev/berth/internal/run"
)

// backend is a provisioner of this machine.
type backend interface {
	provision.Provisioner
	// Run watches the pools until the context ends.
	Run(ctx context.Context) error
	// Healthy returns why the pools cannot be managed; it names the pool.
	Healthy() error
}

// disks are the pools and mounts of this machine.
type disks struct {
	backends []backend
	members  []provision.Member // the same, with the types of their pools
	all      *provision.Mux
	mounter  mount.Mounter
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
	groups, err := lvm.New(lvm.Config{Runner: runner, Devices: kernel.Devices{}, Disks: whole, Mkfs: mounter.Mkfs, Udev: udev})
	if err != nil {
		return nil, fmt.Errorf("setting up LVM: %w", err)
	}
	zpools, err := newZFS(runner, mounter, whole)
	if err != nil {
		return nil, err
	}
	filesystems, err := btrfs.New(btrfs.Config{Runner: runner, Disks: whole})
	if err != nil {
		return nil, fmt.Errorf("setting up btrfs: %w", err)
	}
	d := &disks{mounter: mounter}
	d.all = provision.NewMux(
		d.member(groups, provision.LVM, provision.LVMThin),
		d.member(zpools, provision.ZFS),
		d.member(filesystems, provision.Btrfs),
		d.member(whole, provision.Device),
	)
	return d, nil
}

// member adds a backend that serves pools of some types.
func (d *disks) member(b backend, types ...string) provision.Member {
	m := provision.Member{Types: types, Provisioner: b}
	d.backends, d.members = append(d.backends, b), append(d.members, m)
	return m
}

// newZFS returns a provisioner that serves zpools whenever there are some. On a node without
// ZFS it only reads one directory of the kernel now and then.
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
func (d *disks) healthy() (err error) {
	for _, b := range d.backends {
		err = errors.Join(err, b.Healthy())
	}
	return err
}

func (d *disks) node() poold.Node { return poold.NewLocal(d.all, d.mounter) }

// run watches the pools until ctx ends.
func (d *disks) run(ctx context.Context) (err error) {
	tends, err := tendPools(machineDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tends.end()) }()
	work, ctx := errgroup.WithContext(ctx)
	for _, b := range d.backends {
		work.Go(func() error { return b.Run(ctx) })
	}
	work.Go(func() error { return d.all.Run(ctx) })
	return work.Wait()
}
