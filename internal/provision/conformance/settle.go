package conformance

import (
	"fmt"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
)

// settleTimeout bounds how long a pool may take to be free again.
const settleTimeout = 2 * time.Minute

// settle waits until the space of deleted volumes is free: it may have to be wiped before
// another volume can have it.
func (f fixture) settle(t testing.TB) {
	t.Helper()
	timeout := time.NewTimer(settleTimeout)
	defer timeout.Stop()
	for {
		waiting := f.unsettled(t)
		if waiting == "" {
			return
		}
		select {
		case <-f.Provisioner.Changed():
		case <-timeout.C:
			t.Fatalf("still not free: %s", waiting)
		}
	}
}

// unsettled describes the pools where deleted volumes still take room; empty if there is none.
func (f fixture) unsettled(t testing.TB) (waiting string) {
	t.Helper()
	pools := f.Pools
	if !f.whole {
		pools = []provision.PoolRef{f.Pool}
	}
	for _, pool := range pools {
		f.Pool = pool
		p := f.pool(t)
		if len(p.Wiping) > 0 || f.whole && len(p.Volumes) == 0 && p.Free != p.Total {
			waiting += fmt.Sprintf("%s: %s %+v\n", p.Name, p.Problem, p.Wiping)
		}
	}
	return waiting
}
