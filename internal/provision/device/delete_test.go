package device_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/device/devicetest"
)

func TestNothingIsTakenForDeletedWhileTheKernelDoesNotTellItsDisks(t *testing.T) {
	for name, begin := range map[string]func(*testing.T, *faulty, *node) *node{
		"a process that has just begun":   func(t *testing.T, f *faulty, _ *node) *node { return f.again(t) },
		"a process that knows the volume": func(_ *testing.T, _ *faulty, n *node) *node { return n },
	} {
		t.Run(name, func(t *testing.T) {
			f, n := deafNode(t)
			n = begin(t, f, n)
			f.unlisted = 1
			if err := n.Delete(t.Context(), id); !errors.Is(err, provision.ErrUnavailable) {
				t.Errorf("deleting: %v, want ErrUnavailable", err)
			}
			if v, err := n.Get(t.Context(), id); err != nil || v.Problem != "" {
				t.Errorf("got %+v, %v", v, err)
			}
		})
	}
}

// Something happens to a volume while its deletion waits for the lock of another operation.
func TestAVolumeThatItsDeletionWaitedForIsLookedAtAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(t *testing.T, f *faulty, n *node, giveUp func())
		want      error
		// stays says that it is not deleted.
		stays bool
	}{
		"the volume stays the same":        {func(*testing.T, *faulty, *node, func()) {}, nil, false},
		"the caller gives the deletion up": {func(_ *testing.T, _ *faulty, _ *node, giveUp func()) { giveUp() }, context.Canceled, true},
		"a copy of the volume turns up": {func(t *testing.T, f *faulty, n *node, _ func()) {
			copied(f.Machine)
			n.report(t, pool("eui.c"))
		}, provision.ErrConflict, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, n := deafNode(t)
				ctx, giveUp := context.WithCancel(t.Context())
				defer giveUp()
				deleted := make(chan error, 1)
				f.BeforeHold(func() {
					go func() { deleted <- n.Delete(ctx, id) }()
					synctest.Wait()
					tc.meanwhile(t, f, n, giveUp)
					synctest.Wait()
				})
				if _, err := n.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: provision.Raw}); err != nil && !errors.Is(err, tc.want) {
					t.Errorf("formatting: %v", err)
				}
				if err := <-deleted; !errors.Is(err, tc.want) {
					t.Errorf("deleting: %v, want %v", err, tc.want)
				}
				n.Wait()
				if p := n.report(t, pool("naa.a")); (len(p.Volumes) == 1) != tc.stays {
					t.Errorf("the disk is reported as %+v", p)
				}
			})
		})
	}
}

// The wiper holds the disk open.
func TestConcurrentDeletionsSucceedThoughTheDiskIsBeingWiped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := deafNode(t)
		second := make(chan error, 1)
		f.BeforeHold(func() {
			go func() { second <- n.Delete(t.Context(), id) }()
			synctest.Wait()
		})
		f.afterHold = func() {
			if _, err := f.Machine.Hold("sda"); err != nil {
				t.Error(err)
			}
		}
		n.delete(t, id)
		if err := <-second; err != nil {
			t.Errorf("deleting it at the same time: %v", err)
		}
	})
}

// The last moment: the provisioner is about to open the disk.
func TestNothingIsWrittenToADiskThatNoLongerBearsTheVolume(t *testing.T) {
	for name, last := range map[string]func(*testing.T, *faulty){
		"the disk was cleared":                      func(_ *testing.T, f *faulty) { overwritten(f.Machine, "sda", "nvme0n1") },
		"a foreign program wrote a partition table": func(_ *testing.T, f *faulty) { put(f.Machine, "sda", theirs()) },
		"a foreign program wrote the primary table": func(_ *testing.T, f *faulty) { put(f.Machine, "sda", theirs()[2:]) },
		"another process deleted the volume":        func(t *testing.T, f *faulty) { f.again(t).delete(t, id) },
		"another volume was put on the disk": func(t *testing.T, f *faulty) {
			f.again(t).create(t, "pvc-other", pool("eui.c"))
			overwritten(f.Machine, "sda", "nvme0n1")
		},
	} {
		for what, do := range map[string]func(*testing.T, *node) error{
			"deleting": func(t *testing.T, n *node) error { return n.Delete(t.Context(), id) },
			"getting":  func(t *testing.T, n *node) error { _, err := n.Get(t.Context(), id); return err },
		} {
			t.Run(what+" when "+name, func(t *testing.T) {
				f := &faulty{Machine: disks(), deaf: what == "getting"}
				f.again(t).create(t, id, pool("naa.a"))
				f.Reboot()
				n := f.again(t)
				n.report(t, pool("naa.a"))
				if what == "getting" {
					f.forget("sda")
				}
				f.BeforeHold(func() {
					last(t, f)
					f.CrashAfter(0)
				})
				if err := do(t, n); errors.Is(err, devicetest.ErrCrash) {
					t.Error(err)
				}
				if effects := f.Live(); effects != 0 {
					t.Errorf("there were %d tries to change a disk", effects)
				}
			})
		}
	}
}

func TestAVolumeWhosePartitionCannotBeForgottenIsNotDeleted(t *testing.T) {
	f, n := deafNode(t)
	f.fault = always(partitioned)
	if err := n.Delete(t.Context(), id); !errors.Is(err, errFaulty) {
		t.Errorf("deleting: %v", err)
	}
	if v, err := n.Get(t.Context(), id); err != nil || v.Problem != "" {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestAVolumeWhoseDiskIsGoneIsNamedWhenItIsNotDeleted(t *testing.T) {
	m := disks()
	n := newNode(t, m)
	n.create(t, id, pool("naa.a"))
	m.Pull("sda")
	if err := n.Delete(t.Context(), id); !errors.Is(err, provision.ErrPoolMissing) || !strings.Contains(err.Error(), id) {
		t.Errorf("deleting: %v, want ErrPoolMissing and the volume's name", err)
	}
}

func TestADiskIsWipedWithoutAnyReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := disks()
		n := start(t, m)
		m.WritePartition(n.create(t, id, pool("naa.a")).Content.Source, secret)
		synctest.Wait()
		n.delete(t, id)
		if synctest.Wait(); m.Medium("sda").Used() {
			t.Error("the disk is not empty")
		}
	})
}

func TestOwnChangesAreSignalledWithoutAWatch(t *testing.T) {
	n := newNode(t, disks())
	for _, change := range []func(){
		func() { n.create(t, id, pool("naa.a")) }, func() { n.delete(t, id) },
	} {
		change()
		select {
		case <-n.Changed():
		default:
			t.Error("nothing was signalled")
		}
	}
}
