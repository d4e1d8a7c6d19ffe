package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/kernel"
	"berth.dev/berth/internal/provision/zfs"
	zfskernel "berth.dev/berth/internal/provision/zfs/kernel"
	"berth.dev/berth/internal/run"
	"berth.dev/berth/internal/run/runtest"
)

// disksOf is a node's disks, once in this process and once behind poold's socket. This
// process serves the socket, too, so that it can count the processes that poold starts.
type disksOf struct {
	local, remote poold.Node
	// bare starts the commands of the bare side; counter and changes see Berth's commands.
	bare    *zvols
	counter *runtest.Counter
	changes *recorder
	tidying *tidying
}

// newDisks returns disks that no provisioner serves yet.
func newDisks(r run.Runner) disksOf {
	changes := &recorder{Runner: r}
	return disksOf{
		bare: &zvols{Runner: r, names: map[string]bool{}}, counter: runtest.Count(changes), changes: changes,
		tidying: &tidying{wait: func() {}},
	}
}

// served holds the provisioners of disks.
type served struct {
	groups *lvm.Provisioner
	zpools *zfs.Provisioner
	all    *provision.Mux
}

// serve sets up LVM and ZFS as an agent does, but for whole disks.
func (d *disksOf) serve() (s served, err error) {
	mounter, err := linux.New(linux.Config{Runner: d.counter})
	if err != nil {
		return s, fmt.Errorf("setting up mounts: %w", err)
	}
	s.groups, err = lvm.New(lvm.Config{Runner: d.counter, Devices: kernel.Devices{}, Mkfs: mounter.Mkfs})
	if err != nil {
		return s, fmt.Errorf("setting up LVM: %w", err)
	}
	devices := alone{Devices: &zfskernel.Devices{}, zpool: poolName(socketSide), others: d.bare}
	s.zpools, err = zfs.New(zfs.Config{Runner: d.counter, Devices: devices, Mkfs: mounter.Mkfs, Pause: d.tidying.pause})
	if err != nil {
		return s, fmt.Errorf("setting up ZFS: %w", err)
	}
	d.tidying.wait = s.zpools.Wait
	s.all = provision.NewMux(
		provision.Member{Types: []string{provision.LVM, provision.LVMThin}, Provisioner: s.groups},
		provision.Member{Types: []string{provision.ZFS}, Provisioner: s.zpools},
	)
	d.local = poold.NewLocal(s.all, mounter)
	return s, nil
}

func (s served) healthy() error { return errors.Join(s.groups.Healthy(), s.zpools.Healthy()) }

// withDisks calls do with the node's disks.
func withDisks(ctx context.Context, do func(ctx context.Context, d disksOf) error) error {
	d := newDisks(run.Exec{})
	s, err := d.serve()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-local-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "poold.sock")

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return s.groups.Run(ctx) })
	work.Go(func() error { return s.zpools.Run(ctx) })
	work.Go(func() error { return s.all.Run(ctx) })
	work.Go(func() error {
		return poold.Run(ctx, poold.Config{Socket: socket, Node: d.local, Healthy: s.healthy})
	})
	work.Go(func() error {
		defer stop()
		client, err := dial(ctx, socket)
		if err != nil {
			return err
		}
		d.remote = client
		return errors.Join(do(ctx, d), client.Close())
	})
	return work.Wait()
}

// dial makes a client of a poold and waits until it answers.
func dial(ctx context.Context, socket string) (*poold.Client, error) {
	client, err := poold.Dial(ctx, socket)
	if err != nil {
		return nil, err
	}
	err = until(ctx, "poold answers", func() bool { return client.Healthy(ctx) == nil })
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}
