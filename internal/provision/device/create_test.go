package device_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/devicetest"
)

// ask asks for a volume on a disk.
func ask(id, identity string) provision.CreateRequest {
	return provision.CreateRequest{ID: id, Pool: pool(identity), Size: 1}
}

func TestAVolumeIsNotMadeBeforeItIsKnownWhereItIs(t *testing.T) {
	f, _ := deafNode(t)
	n := f.again(t)
	f.unlisted = 1
	f.CrashAfter(0)
	for _, want := range []error{provision.ErrUnavailable, provision.ErrConflict} {
		if v, err := n.Create(t.Context(), ask(id, "naa.b")); !errors.Is(err, want) {
			t.Errorf("%+v, %v; want %v", v, err, want)
		}
	}
	if effects := f.Live(); effects != 0 {
		t.Errorf("there were %d tries to change a disk", effects)
	}
}

func TestConcurrentRequestsMakeOneVolumeOnOneDisk(t *testing.T) {
	for name, tc := range map[string]struct {
		second provision.CreateRequest
		want   error
	}{
		"the same volume on two disks": {ask(id, "naa.b"), provision.ErrConflict},
		"two volumes on the same disk": {ask("pvc-other", "naa.a"), provision.ErrNoSpace},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := disks()
				n := newNode(t, m)
				second := make(chan error, 1)
				m.BeforeHold(func() {
					go func() { _, err := n.Create(t.Context(), tc.second); second <- err }()
					synctest.Wait()
				})
				n.create(t, id, pool("naa.a"))
				if err := <-second; !errors.Is(err, tc.want) {
					t.Errorf("the second: %v, want %v", err, tc.want)
				}
				if m.Medium("sdb").Used() {
					t.Error("the second disk is used")
				}
			})
		})
	}
}

// A caller that gives up while it waits for a lock gets no volume, and gives back the locks that it has.
func TestACallerThatGivesUpMakesNoVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := disks()
		n := newNode(t, m)
		m.BeforeHold(func() {
			for _, r := range []provision.CreateRequest{ask(id, "naa.b"), ask("pvc-other", "naa.a")} {
				ctx, giveUp := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { _, err := n.Create(ctx, r); done <- err }()
				synctest.Wait()
				giveUp()
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Errorf("%v; want it to be given up", err)
				}
			}
			synctest.Wait()
		})
		n.create(t, id, pool("naa.a"))
		if n.Wait(); m.Medium("sdb").Used() {
			t.Error("a volume was made")
		}
		n.create(t, "pvc-other", pool("naa.b"))
	})
}

// The content of a disk is unknown until it is read with the disk opened exclusively.
func TestADiskThatCannotBeReadWhenItIsHeldIsNotTaken(t *testing.T) {
	f := &faulty{Machine: disks(), fault: always(read)}
	n := over(t, f.Machine, f)
	f.CrashAfter(0)
	if v, err := n.Create(t.Context(), ask(id, "naa.a")); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("%+v, %v; want ErrUnavailable", v, err)
	}
	if effects := f.Live(); effects != 0 {
		t.Errorf("there were %d tries to change a disk", effects)
	}
	f.fault = nil
	n.create(t, id, pool("naa.a"))
}

func TestADiskThatTookTheNameOfAnotherIsLeftToItself(t *testing.T) {
	m := disks()
	n := newNode(t, m)
	m.BeforeHold(func() {
		m.Pull("sda")
		m.Plug(devicetest.Disk("sda", "naa.z", diskSize), devicetest.NewMedium())
	})
	if v, err := n.Create(t.Context(), ask(id, "naa.a")); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("%+v, %v; want ErrUnavailable", v, err)
	}
	n.create(t, id, pool("naa.z"))
}

// The kernel may leave a disk out of its list for a moment, while a volume on it is created.
func TestAVolumeOnADiskThatWasLeftOutForAMomentIsFound(t *testing.T) {
	f := &faulty{Machine: disks()}
	n := over(t, f.Machine, f)
	f.BeforeHold(func() {
		f.hidden = "sda"
		n.report(t, pool("naa.a"))
	})
	if v, err := n.Create(t.Context(), ask(id, "naa.a")); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("%+v, %v; want ErrNotFound", v, err)
	}
	f.hidden = ""
	n.create(t, id, pool("naa.a"))
}

func TestAVolumeThatADiskHasNoRoomForIsNotMade(t *testing.T) {
	m := disks()
	n := newNode(t, m)
	r := ask(id, "naa.a")
	r.Size = room + 1
	if v, err := n.Create(t.Context(), r); !errors.Is(err, provision.ErrNoSpace) {
		t.Errorf("%+v, %v; want ErrNoSpace", v, err)
	}
	if m.Medium("sda").Used() {
		t.Error("the disk was written")
	}
}

func TestAVolumeWhoseDiskIsGoneIsShownWithThatWhenItIsAskedFor(t *testing.T) {
	m := disks()
	n := newNode(t, m)
	n.create(t, id, pool("naa.a"))
	m.Pull("sda")
	if v, err := n.Create(t.Context(), ask(id, "naa.a")); err != nil || !strings.Contains(v.Problem, "gone") {
		t.Errorf("%+v, %v; want a problem", v, err)
	}
}

func TestAVolumeWhosePartitionTheKernelForgotHasItWhenItIsAskedFor(t *testing.T) {
	f, n := deafNode(t)
	for name, asked := range map[string]func() (provision.Volume, error){
		"creating": func() (provision.Volume, error) { return n.Create(t.Context(), ask(id, "naa.a")) },
		"getting":  func() (provision.Volume, error) { return n.Get(t.Context(), id) },
	} {
		f.forget("sda")
		if v, err := asked(); err != nil || v.ID != id || v.Problem != "" || !f.Exists(v.Content.Source) {
			t.Errorf("%s: %+v, %v; want a volume whose partition is there", name, v, err)
		}
	}
}

func TestAVolumeThatIsWholeIsGivenOutWithoutItsDiskBeingOpenedForWriting(t *testing.T) {
	m := disks()
	n := newNode(t, m)
	want := n.create(t, id, pool("naa.a"))
	m.BeforeHold(func() { t.Error("it was opened") })
	if got := n.create(t, id, pool("naa.a")); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAVolumeIsGivenOutWhileItIsMountedThoughItsTableIsDamaged(t *testing.T) {
	f, n := deafNode(t)
	v := n.create(t, id, pool("naa.a"))
	lose(f.Machine, "sda", true)
	f.Mount(v.Content.Source)
	if got, err := f.again(t).Create(t.Context(), ask(id, "naa.a")); err != nil || got != v {
		t.Errorf("%+v, %v; want %+v", got, err, v)
	}
}

// The volume was made before, and something is in its way.
func TestAVolumeThatCannotBeMadeUsableIsNotGivenOut(t *testing.T) {
	for name, tc := range map[string]struct {
		disturb func(*faulty)
		want    error
	}{
		"a foreign device holds the disk, and the kernel has forgotten the partition": {func(f *faulty) {
			f.forget("sda")
			f.Edit("sda", func(d *device.Disk) { d.Holders = []string{"md0"} })
		}, provision.ErrInUse},
		"a foreign partition is open in the place of the volume's partition": {func(f *faulty) {
			f.partitions("sda", []device.Partition{{Name: "sda2", Number: 2, Start: mib, Length: mib}})
			f.Open("/dev/sda2")
		}, provision.ErrInUse},
		"the partition cannot be added": {func(f *faulty) {
			f.forget("sda")
			f.fault = always(partitioned)
		}, errFaulty},
		"the table cannot be written": {func(f *faulty) {
			f.forget("sda")
			lose(f.Machine, "sda", true)
			f.fault = always(written)
		}, errFaulty},
		"a foreign program writes a table at the last moment": {func(f *faulty) {
			f.forget("sda")
			f.BeforeHold(func() { put(f.Machine, "sda", theirs()[2:]) })
		}, provision.ErrUnavailable},
		"a foreign program writes a table over a damaged table at the last moment": {func(f *faulty) {
			lose(f.Machine, "sda", false)
			f.BeforeHold(func() { put(f.Machine, "sda", theirs()[2:]) })
		}, provision.ErrUnavailable},
		"a foreign program clears the disk at the last moment": {func(f *faulty) {
			f.forget("sda")
			f.BeforeHold(func() {
				f.Medium("sda").Put(make([]byte, mib), 0)
				f.Medium("sda").Put(make([]byte, mib), diskSize-mib)
			})
		}, provision.ErrNotFound},
		"the device node leads to another disk": {func(f *faulty) { f.Mislead("/dev/sda1", "/dev/sdb1") }, provision.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			f, n := deafNode(t)
			n.create(t, "pvc-other", pool("naa.b"))
			tc.disturb(f)
			if v, err := f.again(t).Create(t.Context(), ask(id, "naa.a")); !errors.Is(err, tc.want) {
				t.Errorf("%+v, %v; want %v", v, err, tc.want)
			}
		})
	}
}

func TestAVolumeWhoseTableIsNotAllWrittenIsNotMade(t *testing.T) {
	for at := range 5 {
		f := &faulty{Machine: disks(), deaf: true}
		n := over(t, f.Machine, f)
		writes := 0
		f.fault = func(w what) error {
			if w != written {
				return nil
			}
			if writes++; writes == at+1 {
				return errFaulty
			}
			return nil
		}
		if v, err := n.Create(t.Context(), ask(id, "naa.a")); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("write %d fails: %+v, %v", at, v, err)
		}
		if v := n.create(t, id, pool("naa.a")); !f.Exists(v.Content.Source) {
			t.Errorf("write %d failed, and then the partition is not there", at)
		}
	}
}

func TestNoVolumeIsMadeWithoutAnIdentity(t *testing.T) {
	m := disks()
	p, err := device.New(device.Config{Disks: m, Mkfs: (&mkfs{machine: m}).make, Random: iotest.ErrReader(errFaulty)})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := p.Create(t.Context(), ask(id, "naa.a")); !errors.Is(err, errFaulty) || m.Medium("sda").Used() {
		t.Errorf("%+v, %v", v, err)
	}
}

// A process that opened the disk would wait for it.
func TestADiskThatDoesNotAnswerIsNotOpenedForAVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := disks()
		defer m.Hang("sda")()
		n := newNode(t, m)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if v, err := n.Create(ctx, ask(id, "naa.a")); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("%+v, %v; want ErrUnavailable", v, err)
		}
	})
}
