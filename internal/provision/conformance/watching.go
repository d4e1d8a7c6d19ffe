package conformance

import (
	"context"
	"sync"
	"testing"
)

// Watching runs what watches pools, each as Run of a provisioner does, until the test or
// the returned stop ends it.
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
