package zfs_test

import (
	"context"
	"testing"

	"berth.dev/berth/internal/provision/zfs"
)

// later has zpools tidied when it is said, and not before.
func later(t *testing.T, c *zfs.Config) (tidy func(*zfs.Provisioner)) {
	moments, over := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(over) })
	c.Pause = func(context.Context) {
		select {
		case moments <- struct{}{}:
		case <-over:
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
