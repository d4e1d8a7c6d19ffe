package device_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/devicetest"
)

// The content of a disk says nothing about another disk that took its place before the content
// was noted.
func TestAVolumeIsNotBelievedToBeOnADiskThatTookThePlaceOfItsOwn(t *testing.T) {
	replace := func(f *faulty) {
		f.Pull("sda")
		f.Plug(devicetest.Disk("sda", "naa.a", diskSize), devicetest.NewMedium())
	}
	for name, tc := range map[string]struct {
		happens func(*testing.T, *faulty, *node)
		// there says that the volume is there.
		there bool
	}{
		"another disk took the place of the disk": {func(_ *testing.T, f *faulty, _ *node) { replace(f) }, false},
		"another disk took the place of the disk and was reported": {func(t *testing.T, f *faulty, n *node) {
			replace(f)
			n.report(t, pool("naa.a"))
		}, false},
		"the kernel does not find the disk for a moment": {func(_ *testing.T, f *faulty, _ *node) { f.unfound = 1 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &faulty{Machine: disks()}
			n := over(t, f.Machine, f)
			f.afterHold = func() { tc.happens(t, f, n) }
			if v, err := n.Create(t.Context(), ask(id, "naa.a")); !errors.Is(err, provision.ErrNotFound) {
				t.Errorf("%+v, %v; want ErrNotFound", v, err)
			}
			if p := n.report(t, pool("naa.a")); free(p) == tc.there || (len(p.Volumes) == 1) != tc.there {
				t.Errorf("reported %+v", p)
			}
		})
	}
}

// The kernel does not forget a partition that is open.
func TestThePartitionOfAVolumeIsKeptOpenFromTheBeginning(t *testing.T) {
	for name, begin := range map[string]func(f *faulty, n *node) error{
		"the volume was made": func(*faulty, *node) error { return nil },
		"the partition was added anew": func(f *faulty, _ *node) error {
			f.Reboot()
			f.forget("sda")
			_, err := f.again(t).Get(t.Context(), id)
			return err
		},
		"the table was completed": func(f *faulty, _ *node) error {
			f.Reboot()
			lose(f.Machine, "sda", true)
			_, err := f.again(t).Get(t.Context(), id)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, n := deafNode(t)
			if err := begin(f, n); err != nil {
				t.Fatal(err)
			}
			isKeptOpen(t, f, "sda")
		})
	}
}

func isKeptOpen(t *testing.T, f *faulty, disk string) {
	t.Helper()
	h, err := f.Machine.Hold(disk)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.RemovePartition(1); !errors.Is(err, device.ErrBusy) {
		t.Errorf("forgetting the partition of %s: %v, want ErrBusy", disk, err)
	}
}

func TestThePartitionOfAVolumeIsKeptOpenWhileAnotherIsDeleted(t *testing.T) {
	f, n := deafNode(t)
	n.create(t, "pvc-other", pool("naa.b"))
	n.delete(t, id)
	isKeptOpen(t, f, "sdb")
}

func TestTheDiskOfAVolumeHasNoOtherPartitionOnceItsTableIsCompleted(t *testing.T) {
	f, _ := deafNode(t)
	f.Reboot() // no process has the partition open
	lose(f.Machine, "sda", true)
	f.Edit("sda", func(d *device.Disk) {
		d.Partitions = append(d.Partitions, device.Partition{Name: "sda2", Number: 2, Start: mib / 2, Length: mib / 2})
	})
	v, err := f.again(t).Get(t.Context(), id)
	if err != nil || !f.Exists(v.Content.Source) || f.Exists("/dev/sda2") {
		t.Errorf("got %+v, %v, and another partition: %v", v, err, f.Exists("/dev/sda2"))
	}
}

func TestThePartitionOfAVolumeStaysWhileItsTableIsCompleted(t *testing.T) {
	f, _ := deafNode(t)
	lose(f.Machine, "sda", true)
	f.fault = func(w what) error {
		if w == partitioned {
			t.Error("the kernel was told of partitions")
		}
		return nil
	}
	if v, err := f.again(t).Get(t.Context(), id); err != nil || v.Problem != "" {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestATableIsCompletedWhenItsVolumeIsAskedFor(t *testing.T) {
	f, _ := deafNode(t)
	for _, backup := range []bool{true, false} {
		lose(f.Machine, "sda", backup)
		if v, err := f.again(t).Get(t.Context(), id); err != nil || v.Problem != "" {
			t.Errorf("got %+v, %v", v, err)
		}
	}
}

func TestAnOwnChangeIsNoNewsOnceItWasSignalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := devicetest.Disk("sda", "naa.a", diskSize)
		d.Links = []string{"/dev/disk/by-id/one"}
		n := start(t, devicetest.NewMachine(d))
		synctest.Wait() // it has looked, and looks no more by itself
		n.create(t, id, pool("naa.a"))
		synctest.Wait()
		<-n.Changed()
		<-time.After(time.Minute)
		select {
		case <-n.Changed():
			t.Error("it was signalled again")
		default:
		}
	})
}

// A copy turns up while a caller waits to make a volume usable.
func TestAVolumeOfWhichACopyTurnedUpIsNotMadeUsable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := deafNode(t)
		f.forget("sda")
		second := make(chan error, 1)
		f.BeforeHold(func() {
			go func() { _, err := n.Get(t.Context(), id); second <- err }()
			synctest.Wait()
			copied(f.Machine)
			n.report(t, pool("eui.c"))
			f.CrashAfter(0)
		})
		_, first := n.Get(t.Context(), id)
		for name, err := range map[string]error{"the first": first, "the second": <-second} {
			if !errors.Is(err, provision.ErrConflict) {
				t.Errorf("%s: %v, want ErrConflict", name, err)
			}
		}
		if effects := f.Live(); effects != 1 {
			t.Errorf("there were %d tries to change a disk, want that of the first", effects)
		}
	})
}

// A reading that began while the table was written would replace newer facts when it ends.
func TestADiskThatIsBeingChangedIsNotReadForAReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{Machine: disks()}
		n := f.again(t)
		conformance.Watching(t, n.Run)
		synctest.Wait()
		asked := false
		f.fault = func(w what) error {
			if w != partitioned {
				return nil
			}
			f.Edit("sda", func(*device.Disk) {}) // an event, as udev's
			f.beforeRead = func() { t.Error("it is read while it is changed") }
			n.report(t, pool("naa.a"))
			f.beforeRead, asked = nil, true
			return nil
		}
		n.create(t, id, pool("naa.a"))
		if !asked {
			t.Error("no partition was made")
		}
	})
}

// lingering is a machine on which one reading of a disk does not end before its time.
type lingering struct {
	*devicetest.Machine
	until atomic.Pointer[chan struct{}]
}

func (l *lingering) Read(name string) (device.Reader, error) {
	r, err := l.Machine.Read(name)
	if until := l.until.Swap(nil); until != nil {
		return lingers{r, *until}, err
	}
	return r, err
}

type lingers struct {
	device.Reader
	until chan struct{}
}

func (l lingers) Close() error {
	<-l.until
	return l.Reader.Close()
}

// A reading that began before a volume was formatted says that the volume is blank.
func TestAReadingThatAChangeOvertakesIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lingering{Machine: disks()}
		n := over(t, l.Machine, l)
		conformance.Watching(t, n.Run)
		n.create(t, id, pool("naa.a"))
		synctest.Wait()
		n.report(t, pool("naa.a"))
		until := make(chan struct{})
		l.until.Store(&until)
		l.Edit("sda", func(*device.Disk) {}) // an event, as udev's
		synctest.Wait()
		var reporting sync.WaitGroup
		reporting.Go(func() { n.report(t, pool("naa.a")) })
		synctest.Wait() // it has read the disk
		if l.until.Load() != nil {
			t.Fatal("no reading is under way")
		}
		if _, err := n.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: provision.Ext4}); err != nil {
			t.Fatal(err)
		}
		close(until)
		reporting.Wait()
		if v, err := n.Get(t.Context(), id); err != nil || v.Filesystem != provision.Ext4 {
			t.Errorf("got %+v, %v", v, err)
		}
	})
}
