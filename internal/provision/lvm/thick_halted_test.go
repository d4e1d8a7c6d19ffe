package lvm_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

func TestACallerThatDoesNotWaitForTheEndOfACopyDeletesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100)
		s.host.Disturb(func(h *lvmtest.Host) {
			h.Copying = func(_ string, _, _ int64, do func() error) error { <-s.may; return do() } // a slow disk
		})
		s.took()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.p.DeleteSnapshot(short, "snap-1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("deleting it: %v", err)
		}
		s.awaitWhole()
	})
}

// LVM's report waits for the change, and would be given up after half a minute.
func TestAGroupIsNotReadForACopyWhileItIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100)
		s.host.Disturb(func(h *lvmtest.Host) {
			h.Copying = func(string, int64, int64, func() error) error { return errors.New("a broken sector") }
		})
		s.took()
		synctest.Wait() // until the copy is to be tried again
		var changing atomic.Bool
		s.host.Disturb(func(h *lvmtest.Host) {
			h.Copying = nil
			h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
				switch {
				case c.Operation == "fullreport" && changing.Load():
					t.Error("the group is read while it is changed")
				case c.Operation == "lvcreate":
					changing.Store(true)
					out, err := do()
					<-time.After(time.Minute)
					changing.Store(false)
					return out, err
				}
				return do()
			}
		})
		if _, err := s.p.Create(t.Context(), request("pvc-3", 1)); err != nil {
			t.Fatal(err)
		}
		s.awaitWhole()
	})
}

// A copy that is made anew under the id of a deleted one is filled, too.
func TestACopyIsFilledThoughAnEarlierOneOfItsIDWasDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100, func(r *provision.CreateRequest) { r.Wipe = provision.WipeNone })
		s.took()
		if err := s.p.DeleteSnapshot(t.Context(), "snap-1"); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { p := s.pool(); return p.Free == 98*unit }, "something is left")
		s.took()
		s.awaitWhole()
	})
}

// Else a copy would wait for minutes until Berth looks for work again.
func TestThickCopiesAreMadeAndTidiedUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100)
		s.let()
		s.took()
		clone, err := s.copy("pvc-2", 2, provision.Source{Volume: "pvc-1"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, err := s.p.GetSnapshot(t.Context(), "snap-1"); err != nil || got.Copying {
			t.Errorf("the snapshot is %+v, %v", got, err)
		}
		if got, err := s.p.Get(t.Context(), clone.ID); err != nil || got.Copying {
			t.Errorf("the clone is %+v, %v", got, err)
		}
		if p := s.pool(); p.Free != 94*unit || p.Foreign != 0 {
			t.Errorf("left is %+v", p)
		}
	})
}

func TestTheCopyOnWriteVolumeOfACopyGoesAtOnceWithTheCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100, func(r *provision.CreateRequest) { r.Wipe = provision.WipeNone })
		s.took()
		synctest.Wait()
		removal := pause(s.host, "lvremove")
		ended := removeSoon(t.Context(), s.p, "snap-1").ended
		s.let()
		<-removal.begun
		synctest.Wait() // until the filling has ended, and nothing else looks for work
		close(removal.may)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if p := s.pool(); p.Free != 98*unit || p.Foreign != 0 {
			t.Errorf("left is %+v", p)
		}
	})
}
