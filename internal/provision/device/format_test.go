package device_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/devicetest"
)

func formatted(t *testing.T, n *node, filesystem string) error {
	t.Helper()
	_, err := n.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: filesystem})
	return err
}

// Berth reads the disk itself before mkfs.
func TestNoFilesystemIsMadeOnADiskThatIsNotTheVolumesAnyMore(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(t *testing.T, f *faulty, n *node)
		want    error
	}{
		"the disk cannot be read": {func(_ *testing.T, f *faulty, _ *node) {
			f.beforeRead = func() { f.Fail("sda", errFaulty) }
		}, provision.ErrUnavailable},
		"a foreign program wrote the primary table": {func(_ *testing.T, f *faulty, _ *node) {
			f.beforeRead = func() { put(f.Machine, "sda", theirs()[2:]) }
		}, provision.ErrConflict},
		"another volume was put on the disk": {func(_ *testing.T, f *faulty, n *node) {
			n.create(t, "pvc-other", pool("eui.c"))
			f.beforeRead = func() { overwritten(f.Machine, "sda", "nvme0n1") }
		}, provision.ErrConflict},
		"the disk is plugged in anew": {func(t *testing.T, f *faulty, n *node) {
			f.beforeKeep = func() {
				f.Plug(devicetest.Disk("sdq", "naa.a", diskSize), f.Pull("sda"))
				n.report(t, pool("naa.a"))
			}
		}, provision.ErrConflict},
		"a copy of the disk turns up": {func(t *testing.T, f *faulty, n *node) {
			f.beforeKeep = func() {
				copied(f.Machine)
				n.report(t, pool("eui.c"))
			}
		}, provision.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := deafNode(t)
			n := f.again(t)
			n.report(t, pool("naa.a"))
			tc.happens(t, f, n)
			if err := formatted(t, n, provision.Ext4); !errors.Is(err, tc.want) || n.mkfs.made > 0 {
				t.Errorf("formatting: %v, want %v; %d filesystems were made", err, tc.want, n.mkfs.made)
			}
		})
	}
}

// The disk may have changed while mkfs ran.
func TestAFilesystemIsRecordedOnlyWithTheVolumeItWasMadeOn(t *testing.T) {
	for name, last := range map[string]func(t *testing.T, f *faulty){
		"a foreign program wrote the primary table": func(_ *testing.T, f *faulty) { put(f.Machine, "sda", theirs()[2:]) },
		"another volume was put on the disk": func(t *testing.T, f *faulty) {
			f.again(t).create(t, "pvc-other", pool("eui.c"))
			overwritten(f.Machine, "sda", "nvme0n1")
		},
		"another process recorded another filesystem": func(t *testing.T, f *faulty) {
			if err := formatted(t, f.again(t), provision.XFS); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, n := deafNode(t)
			f.BeforeHold(func() {
				last(t, f)
				f.CrashAfter(0)
			})
			if err := formatted(t, n, provision.Ext4); !errors.Is(err, provision.ErrConflict) {
				t.Errorf("formatting: %v, want ErrConflict", err)
			}
			if effects := f.Live(); effects != 0 {
				t.Errorf("there were %d tries to change a disk", effects)
			}
		})
	}
}

func TestAVolumeOfWhichACopyTurnsUpWhileItIsFormattedIsNotSaidToBe(t *testing.T) {
	f, n := deafNode(t)
	f.BeforeHold(func() {
		copied(f.Machine)
		n.report(t, pool("eui.c"))
	})
	if err := formatted(t, n, provision.Raw); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("formatting: %v, want ErrConflict", err)
	}
}

// A second mkfs would destroy data that a user has written since the first.
func TestAFilesystemIsMadeOnceHoweverManyAskForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := disks()
		var n *node
		second, givenUp := make(chan error, 1), make(chan error, 1)
		made := 0
		p, err := device.New(device.Config{Disks: m, Mkfs: func(context.Context, provision.Volume, string, string) error {
			if made++; made > 1 {
				return nil
			}
			ctx, giveUp := context.WithCancel(t.Context())
			go func() { second <- formatted(t, n, provision.Ext4) }()
			go func() {
				_, err := n.Format(ctx, provision.FormatRequest{ID: id, Filesystem: provision.Ext4})
				givenUp <- err
			}()
			synctest.Wait()
			giveUp()
			synctest.Wait()
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		n = &node{Provisioner: p, machine: m}
		n.create(t, id, pool("naa.a"))
		if err := errors.Join(formatted(t, n, provision.Ext4), <-second); err != nil {
			t.Error(err)
		}
		if err := <-givenUp; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up: %v", err)
		}
		if n.Wait(); made != 1 {
			t.Errorf("%d filesystems were made", made)
		}
	})
}

// During a loan no other operation changes the disks that were asked for, also those that are
// refused.
func TestAFilesystemIsNotRecordedOnADiskThatIsAskedForAsALoan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := disks()
		n := newNode(t, m)
		n.create(t, id, pool("naa.a"))
		done := make(chan error, 1)
		_, err := n.Lend(t.Context(), []string{pool("naa.a").Name, pool("naa.b").Name}, func([]string) error {
			go func() { done <- formatted(t, n, provision.Raw) }()
			synctest.Wait()
			if len(done) > 0 {
				t.Error("it was recorded")
			}
			return nil
		})
		if err := errors.Join(err, <-done); err != nil {
			t.Error(err)
		}
	})
}
