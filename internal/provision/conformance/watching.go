package conformance

import (
	"context"
	"sync"
	"testing"
)

// Watching runs the functions that watch pools, such as Run of a provisioner, until the test
// ends or stop is called.
func Watching(t testing.TB, run ...func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	for _, watch := range run {
		running.Go(func() {
			if err := watch(ctx); err != nil {
				t.Errorf("watching: %v", err)
			}
		})
	}
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return stop
}
