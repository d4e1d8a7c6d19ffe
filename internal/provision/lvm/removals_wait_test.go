package lvm_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// removeFor removes a volume for a caller that gives up after a while, and returns the caller's
// error.
func removeFor(t *testing.T, p *lvm.Provisioner, id string, patience time.Duration) chan error {
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		ended <- p.Delete(ctx, id)
	}()
	return ended
}

// A caller that is told that the volume is gone forgets about it.
func TestACallerThatGivesUpDuringARemovalIsNotToldThatItIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p, g, _ := removing(t)
		ids := carveSome(t, p, vg, 1)
		if err := <-removeFor(t, p, ids[0], time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		close(g.open)
	})
}

func TestACallerDoesNotWaitForAChangeAfterItsRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, p, g, _ := removing(t)
		ids := carveSome(t, p, vg, 3)
		removals := []underWay{removeSoon(t.Context(), p, ids[0])}
		<-g.begun
		begin := func(id string) {
			removals = append(removals, removeSoon(t.Context(), p, id))
			synctest.Wait() // until it waits for the group
		}
		begin(ids[1])
		hangs := pause(host, "lvcreate")
		go func() { _, _ = p.Create(t.Context(), request("pvc-new", 1)) }()
		synctest.Wait()
		begin(ids[2]) // which is made together with the second one
		close(g.open)
		<-hangs.begun
		for _, r := range removals {
			if err := <-r.ended; err != nil {
				t.Errorf("%s: %v", r.id, err)
			}
		}
		close(hangs.may)
	})
}

func TestAVolumeThatIsGoneByThenKeepsNoOtherFromRemovalInOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, p, g, counter := removing(t)
		ids := carveSome(t, p, vg, 4)
		removals := []underWay{removeSoon(t.Context(), p, ids[0])}
		<-g.begun
		for _, id := range ids[1:] {
			removals = append(removals, removeSoon(t.Context(), p, id))
		}
		synctest.Wait()
		host.Edit(func(groups map[string]*lvmtest.Group) string {
			g := groups[vg.Name]
			delete(g.Volumes, ids[2])
			g.Seqno++
			return g.Device
		})
		if _, err := p.Get(t.Context(), "pvc-unknown"); !errors.Is(err, provision.ErrNotFound) { // which has all groups read
			t.Error(err)
		}
		counter.Take()
		close(g.open)
		for _, r := range removals {
			if err := <-r.ended; err != nil {
				t.Errorf("%s: %v", r.id, err)
			}
		}
		if got := counter.Take(); !cmp.Equal(got, map[string]int{"lvremove": 2}) {
			t.Errorf("started %v", got)
		}
	})
}
