package metrics

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

var update = flag.Bool("update", false, "write the scrape anew that the tests of alerts and dashboard read")

// The file is what Prometheus reads, so that the tests of the alerts cannot use names that do not exist.
func TestAnAgentShowsPoolsAndOperations(t *testing.T) {
	const path = "../../../test/alerts/testdata/agent.prom"
	registry := prometheus.NewPedanticRegistry()
	disks := memory.NewDisks(memory.PoolConfig{PoolRef: vg0, Total: 64 << 20})
	node := NewOperations(registry, clocktesting.NewFakePassiveClock(time.Unix(0, 0))).Node(poold.NewLocal(memory.New(disks, nil), mountmemory.New(disks)))
	for _, size := range []int64{1 << 20, 1 << 40} {
		_, _ = node.Create(t.Context(), provision.CreateRequest{ID: "vol-a" + fmt.Sprint(size), Pool: vg0, Size: size})
	}
	RegisterPools(registry, func() ([]provision.Pool, error) {
		return []provision.Pool{
			{PoolRef: vg0, Total: 64 << 20, Free: 63 << 20, Volumes: []provision.Volume{{Size: 1 << 20}}},
			{PoolRef: provision.PoolRef{Type: provision.LVMThin, Name: "vg0/thin"}, Total: 200, Free: 100, Fill: provision.Fill{Data: 50, Metadata: 3}},
		}, nil
	}, func() int { return 0 }, func() int { return 0 })
	if *update {
		if err := prometheus.WriteToTextfile(path, registry); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	if err := testutil.GatherAndCompare(registry, want); err != nil {
		t.Errorf("if the change is meant, run go test with -update: %v", err)
	}
}
