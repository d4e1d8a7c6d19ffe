package lvm_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// An administrator who learns that the wrong volume was deleted may save the rest of it.
func TestAWipingEndsOnceOthersChangeTheRemnant(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(v *lvmtest.Volume)
		problem string
	}{
		"it is made a volume again": {func(v *lvmtest.Volume) { v.Tags = []string{"berth.dev/volume=pvc-1"} }, ""},
		"it is cached":              {func(v *lvmtest.Volume) { v.Layout = "cache" }, "lvconvert"},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			host, c := wiping()
			c.WipeStep = unit
			p, _ := start(t, c)
			v := holdsSecret(t, host, p, request("pvc-1", 4))
			host.Disturb(func(h *lvmtest.Host) {
				h.Wiping = func(_ string, offset, _ int64, do func() error) error {
					switch offset {
					case unit:
						host.Edit(func(groups map[string]*lvmtest.Group) string {
							g := groups[vg.Name]
							tc.change(g.Volumes["pvc-1"])
							g.Seqno++
							return g.Device
						})
						<-time.After(time.Second) // until that is noticed
					case 2 * unit:
						t.Error("it is wiped on")
					}
					return do()
				}
			})
			remove(t, p, "pvc-1")
			if tc.problem != "" {
				failing(t, p, tc.problem)
			} else {
				eventually(t, func() bool { _, err := p.Get(t.Context(), "pvc-1"); return err == nil }, "it is no volume again")
			}
			<-time.After(time.Minute)
			if got := host.ReadAt(v.Content.Source, len(secret), 3*unit+4096); got != secret {
				t.Errorf("its last unit holds %q", got)
			}
		}))
	}
}

// The wiper opens the device before it knows of the change.
func TestARemnantThatOthersChangedUnnoticedIsNotWipedAndSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		c.Devices = &holding{Host: host, happens: func() {
			unnoticed(host, func(groups map[string]*lvmtest.Group) {
				groups[vg.Name].Volumes["pvc-1"].Layout = "cache"
				groups[vg.Name].Seqno++
			})
		}}
		host.Wiping = func(_ string, _, _ int64, do func() error) error {
			t.Error("it is wiped")
			return do()
		}
		p, _ := start(t, c)
		create(t, p, request("pvc-1", 2))
		synctest.Wait()
		remove(t, p, "pvc-1")
		synctest.Wait()
		failing(t, p, "lvconvert")
	})
}

func TestAProcessThatEndsWhileItWaitsToWipeWipesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		tries := 0
		host.Wiping = func(string, int64, int64, func() error) error { tries++; return errController }
		p, stop := start(t, c)
		create(t, p, request("pvc-1", 2))
		remove(t, p, "pvc-1")
		synctest.Wait()
		other := pause(host, "lvcreate")
		go func() { _, _ = p.Create(t.Context(), request("pvc-2", 1)) }()
		<-other.begun
		<-time.After(time.Minute) // by now the wiper waits for the group
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			stop()
		}()
		synctest.Wait()
		close(other.may)
		<-ended
		if tries != 1 {
			t.Errorf("it was wiped %d times", tries)
		}
	})
}

func TestAVolumeIsDeletedOnceNoOtherChangeOfTheGroupRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		p, _ := start(t, c)
		create(t, p, request("pvc-1", 2))
		var creating atomic.Bool
		disturb(host, func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
			switch {
			case c.Operation == "lvcreate":
				creating.Store(true)
				<-time.After(time.Second)
				creating.Store(false)
			case creating.Load():
				t.Errorf("LVM runs %s at the same time", c.Operation)
			}
			return do()
		})
		go func() { _, _ = p.Create(t.Context(), request("pvc-2", 1)) }()
		synctest.Wait()
		remove(t, p, "pvc-1")
	})
}

// Else its room would stay taken for minutes, until Berth looks for work again.
func TestAVolumeIsWipedAtOnceThoughItsCallerGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		p, _ := start(t, c)
		create(t, p, request("pvc-1", 2))
		mark := pause(host, "lvchange")
		gaveUp := removeFor(t, p, "pvc-1", time.Second)
		<-mark.begun
		if err := <-gaveUp; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller got %v", err)
		}
		synctest.Wait()
		close(mark.may)
		synctest.Wait()
		if pool := poolOf(t, p, vg); pool.Free != 100*unit {
			t.Errorf("reported %+v", pool)
		}
	})
}
