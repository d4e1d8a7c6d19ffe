//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"berth.dev/berth/test/cluster"
)

// Tests with t.Parallel run side by side, after all others. The others check how much
// room a node has left, or take a node away.

// limit is how long a single wait may take. Nodes are emulated and slow; a wait
// that needs longer has failed.
const limit = 6 * time.Minute

// shared is the cluster all tests use.
var shared *cluster.Cluster

func TestMain(m *testing.M) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var err error
	if shared, err = cluster.Connect(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
