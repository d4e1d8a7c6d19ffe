package zfs_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/run"
)

// later has zpools tidied when the test calls tidy, and not before. When the test ends, a waiting
// tidier goes on.
func later(t *testing.T, c *zfs.Config) (tidy func(*zfs.Provisioner)) {
	moments := make(chan struct{})
	c.Pause = func(context.Context) {
		select {
		case moments <- struct{}{}:
		case <-t.Context().Done(): // it ends before the clean-up waits for the provisioner
		}
	}
	return func(p *zfs.Provisioner) {
		done := make(chan struct{})
		go func() { p.Wait(); close(done) }()
		for {
			select {
			case <-moments:
			case <-done:
				return
			}
		}
	}
}

func TestLeftoversAreRemovedThoughAnotherDeletionMakesAStepImpossible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		p := fresh(t, h)
		create(t, p, "pvc-1", 1)
		r := request("pvc-2", 1)
		r.Source.Volume = "pvc-1"
		made(t, p, r)
		p.Wait()
		hold := make(chan struct{})
		h.Around = only("zfs rollback", func(_ run.Command, do func() ([]byte, error)) ([]byte, error) {
			<-hold
			return do()
		})
		for _, id := range []string{"pvc-1", "pvc-2"} { // the base of the clone goes with it
			if err := p.Delete(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		close(hold)
		p.Wait()
		for _, name := range datasets(h) {
			if strings.Contains(name, "pvc-") {
				t.Errorf("left: %s", name)
			}
		}
	})
}
