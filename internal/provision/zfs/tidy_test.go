package zfs_test

import (
	"context"
	"testing"

	"berth.dev/berth/internal/provision/zfs"
)

// later has zpools tidied when it is said, and not before. When the test ends, whoever waits
// goes on.
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
