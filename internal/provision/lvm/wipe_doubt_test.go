package lvm_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

var errController = errors.New("a broken controller")

// uncounted is a machine that does not tell how often a device is open.
type uncounted struct{ *lvmtest.Host }

func (uncounted) Opens(string) (int, error) { return 0, errController }

func TestAVolumeIsKeptWhileTheKernelDoesNotTellWhetherItIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		c.Devices = uncounted{host}
		p, _ := start(t, c)
		create(t, p, request("pvc-1", 2))
		if err := p.Delete(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrUnavailable) || !errors.Is(err, errController) {
			t.Errorf("deleting it: %v", err)
		}
		if _, err := p.Get(t.Context(), "pvc-1"); err != nil {
			t.Errorf("it is lost: %v", err)
		}
	})
}

// unmeasured is a machine that does not tell the size of a device that it holds.
type unmeasured struct{ *lvmtest.Host }

func (u unmeasured) Hold(path string, is provision.Identity) (lvm.Holder, error) {
	h, err := u.Host.Hold(path, is)
	return sizeless{h}, err
}

type sizeless struct{ lvm.Holder }

func (sizeless) Size() (int64, error) { return 0, errController }

func TestADeletedVolumeWhoseDeviceTellsNoSizeIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		c.Devices = unmeasured{host}
		p, _ := start(t, c)
		holdsSecret(t, host, p, request("pvc-1", 2))
		remove(t, p, "pvc-1")
		failing(t, p, "how large it is: a broken controller")
	})
}

// closing is a machine on which something happens right after a device that was held is closed.
type closing struct {
	*lvmtest.Host
	happens func()
}

func (c *closing) Hold(path string, is provision.Identity) (lvm.Holder, error) {
	h, err := c.Host.Hold(path, is)
	return closes{h, c}, err
}

type closes struct {
	lvm.Holder
	machine *closing
}

func (c closes) Close() error {
	err := c.Holder.Close()
	c.machine.happens()
	return err
}

// The wiper has seen that an administrator made the remnant a volume again. It must not take the
// remnant of the second deletion for one that it has wiped.
func TestAVolumeThatIsDeletedOnceMoreAtThatMomentIsNotRemovedUnwiped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		var p *lvm.Provisioner
		var next atomic.Bool
		again := make(chan struct{})
		c.Devices = &closing{host, func() {
			if next.CompareAndSwap(true, false) {
				remove(t, p, "pvc-1")
				close(again)
			}
		}}
		p, _ = start(t, c)
		holdsSecret(t, host, p, request("pvc-1", 2))
		disturb(host, only("lvchange", func(_ run.Command, do func() ([]byte, error)) ([]byte, error) {
			defer host.On("/dev/vg-a/pvc-1", func(v *lvmtest.Volume) { v.Open = true })
			return do()
		}))
		remove(t, p, "pvc-1")
		failing(t, p, "it is open")
		host.Disturb(func(h *lvmtest.Host) { h.Around = nil })
		next.Store(true)
		host.Edit(func(groups map[string]*lvmtest.Group) (unnoticed string) {
			v := groups[vg.Name].Volumes["pvc-1"]
			v.Tags, v.Open = []string{"berth.dev/volume=pvc-1"}, false
			groups[vg.Name].Seqno++
			return ""
		})
		<-again
		settle(t, p)
		if v := create(t, p, request("pvc-2", 100)); shows(host, v) {
			t.Error("the next volume shows it")
		}
	})
}

// A process that does not end at once is killed, in the middle of any change.
func TestAProcessThatEndsDoesNotWaitForAnOpenDeviceToBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		p, stop := start(t, c)
		create(t, p, request("pvc-1", 2))
		disturb(host, only("lvchange", func(_ run.Command, do func() ([]byte, error)) ([]byte, error) {
			defer host.On("/dev/vg-a/pvc-1", func(v *lvmtest.Volume) { v.Open = true })
			return do()
		}))
		remove(t, p, "pvc-1")
		synctest.Wait()
		begun := time.Now()
		stop()
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it took %v to end", took)
		}
	})
}

// The first call after a restart knows nothing yet.
func TestADeletedVolumeIsGoneThoughAForeignOneOfAnotherGroupBearsItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		host.AddGroup("vg-b", 10)
		host.PutForeign("vg-b", "pvc-1", unit)
		host.Wiping = func(string, int64, int64, func() error) error { return errors.New("a broken sector") }
		p, stop := start(t, c)
		create(t, p, request("pvc-1", 2))
		remove(t, p, "pvc-1")
		failing(t, p, "a broken sector")
		stop()
		again, err := lvm.New(c)
		if err != nil {
			t.Fatal(err)
		}
		remove(t, again, "pvc-1")
		again.Wait()
	})
}

func TestADeletionOfAVolumeThatIsBeingWipedStartsNoProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		counter, c := counted(host)
		host.Wiping = func(string, int64, int64, func() error) error { return errors.New("a broken sector") }
		p, _ := start(t, c)
		create(t, p, request("pvc-1", 2))
		remove(t, p, "pvc-1")
		failing(t, p, "a broken sector")
		counter.Take()
		remove(t, p, "pvc-1")
		if got := counter.Take(); len(got) > 0 {
			t.Errorf("started %v", got)
		}
	})
}

// The disk is not to be believed any more, and neither are the bytes that it took before.
func TestNoProgressIsBelievedOnceTheDiskIgnoredAWriteThoughTheRecordCannotBeTakenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		refused func(args string) bool // by LVM, for a minute
		want    []int64
	}{
		"LVM does not take it back": {func(args string) bool { return !strings.Contains(args, "--addtag") }, []int64{0, 1, 2, 0, 1, 2, 3}},
		"LVM writes no other":       {func(args string) bool { return strings.Contains(args, "berth.dev/wiped=") }, []int64{0, 1, 2, 0, 0, 0, 1, 2, 3}},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			host, c := wiping()
			c.WipeStep, c.WipeRecord = unit, unit
			var lied time.Time
			var begun []int64
			host.Disturb(func(h *lvmtest.Host) {
				h.Wiping = func(_ string, offset, _ int64, do func() error) error {
					begun = append(begun, offset/unit)
					if offset == 2*unit && lied.IsZero() {
						lied = time.Now()
						return nil
					}
					return do()
				}
				h.Around = only("lvchange", func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
					if time.Since(lied) < time.Minute && tc.refused(strings.Join(c.Args[3:], " ")) {
						return nil, exit5(c)
					}
					return do()
				})
			})
			p, _ := start(t, c)
			holdsSecret(t, host, p, request("pvc-1", 4))
			remove(t, p, "pvc-1")
			settle(t, p)
			if !slices.Equal(begun, tc.want) {
				t.Errorf("the steps begin at %v, want %v", begun, tc.want)
			}
		}))
	}
}

func TestAWipingThatFailedGoesOnBehindTheRecordedProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		c.WipeStep, c.WipeRecord = unit, unit
		failed := false
		var begun []int64
		host.Disturb(func(h *lvmtest.Host) {
			h.Wiping = func(_ string, offset, _ int64, do func() error) error {
				begun = append(begun, offset/unit)
				if offset == 2*unit && !failed {
					failed = true
					return errController
				}
				return do()
			}
		})
		p, _ := start(t, c)
		create(t, p, request("pvc-1", 4))
		remove(t, p, "pvc-1")
		settle(t, p)
		if want := []int64{0, 1, 2, 2, 3}; !slices.Equal(begun, want) {
			t.Errorf("the steps begin at %v, want %v", begun, want)
		}
	})
}

// Another program may work with the logical volume by now.
func TestALogicalVolumeThatIsNoRemnantAnyMoreIsNotOpenedToBeWiped(t *testing.T) {
	for name, change := range map[string]func(v *lvmtest.Volume){
		"it is a volume again":       func(v *lvmtest.Volume) { v.Tags = []string{"berth.dev/volume=pvc-1"} },
		"others are at work with it": func(v *lvmtest.Volume) { v.Layout = "cache" },
		"it bears no tag of Berth's": func(v *lvmtest.Volume) { v.Tags = nil },
		"it is a remnant still":      nil,
	} {
		t.Run(name, func(t *testing.T) {
			host, c := wiping()
			held := false
			c.Devices = &holding{Host: host, happens: func() { held = true }}
			p, err := lvm.New(c)
			if err != nil {
				t.Fatal(err)
			}
			create(t, p, request("pvc-1", 2))
			remove(t, p, "pvc-1")
			if change != nil {
				host.On("/dev/vg-a/pvc-1", change)
				_, _ = p.Get(t.Context(), "pvc-unknown") // which has all groups read
			}
			_ = p.WipeRemnant(t.Context(), vg.Name, "pvc-1") // which may say why it does not wipe it
			if held != (change == nil) {
				t.Errorf("it is held to be wiped is %v", held)
			}
		})
	}
}
