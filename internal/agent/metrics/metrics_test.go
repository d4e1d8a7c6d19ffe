package metrics

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/mount"
	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

var vg0 = provision.PoolRef{Type: "LVM", Name: "vg0"}

func TestOperationsAreCountedByOutcome(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	disks := memory.NewDisks(memory.PoolConfig{PoolRef: vg0, Total: 64 << 20})
	n := NewOperations(registry, clock.RealClock{}).Node(poold.NewLocal(memory.New(disks, nil), mountmemory.New(disks)))
	for _, size := range []int64{1 << 20, 1 << 40} {
		_, _ = n.Create(t.Context(), provision.CreateRequest{ID: "vol-a" + fmt.Sprint(size), Pool: vg0, Size: size})
	}
	if got := testutil.CollectAndCount(registry, "berth_agent_disk_operation_seconds"); got != 2 {
		t.Errorf("%d series; want one for each outcome", got)
	}
}

func TestEveryClassOfErrorHasAnOutcome(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range outcomes {
		err := o.class
		if err != nil {
			err = fmt.Errorf("doing it: %w", err)
		}
		if got := outcomeOf(err); got != o.outcome || seen[got] {
			t.Errorf("%v: outcome %q; want %q", err, got, o.outcome)
		}
		seen[o.outcome] = true
	}
	if got := outcomeOf(errors.New("of no class")); got != "error" {
		t.Errorf("outcome %q", got)
	}
}

func TestPoolsAreShownByUse(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	latest := func() ([]provision.Pool, error) {
		return []provision.Pool{{PoolRef: vg0, Total: 10, Foreign: 2, Free: 5, Volumes: []provision.Volume{{Size: 3}}, Snapshots: []provision.Snapshot{{Allocated: 4}}}}, provision.ErrUnavailable
	}
	RegisterPools(registry, latest, func() int { return 1 }, func() int { return 2 })
	want := `# HELP berth_agent_orphaned_snapshots Snapshots on the node that no Snapshot accounts for.
# TYPE berth_agent_orphaned_snapshots gauge
berth_agent_orphaned_snapshots 2
# HELP berth_agent_orphaned_volumes Volumes on the node that no Volume accounts for.
# TYPE berth_agent_orphaned_volumes gauge
berth_agent_orphaned_volumes 1
# HELP berth_agent_pools_reporting 1 while the node's pools can be listed.
# TYPE berth_agent_pools_reporting gauge
berth_agent_pools_reporting 0
# HELP berth_pool_bytes Bytes of a pool, by use: berth, foreign or free.
# TYPE berth_pool_bytes gauge
berth_pool_bytes{pool="vg0",use="berth"} 7
berth_pool_bytes{pool="vg0",use="foreign"} 2
berth_pool_bytes{pool="vg0",use="free"} 5
# HELP berth_pool_snapshots Berth's snapshots in a pool.
# TYPE berth_pool_snapshots gauge
berth_pool_snapshots{pool="vg0"} 1
# HELP berth_pool_volumes Berth's volumes in a pool.
# TYPE berth_pool_volumes gauge
berth_pool_volumes{pool="vg0"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestHowFullAThinPoolIsIsShown(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	thin := provision.Pool{PoolRef: provision.PoolRef{Type: provision.LVMThin, Name: "vg0/thin"}, Total: 200, Fill: provision.Fill{Data: 50, Metadata: 3}}
	RegisterPools(registry, func() ([]provision.Pool, error) { return []provision.Pool{thin, {PoolRef: vg0, Total: 10}}, nil }, func() int { return 0 }, func() int { return 0 })
	want := `# HELP berth_thin_pool_filled_ratio How much of a thin pool is taken, of its data or of its metadata.
# TYPE berth_thin_pool_filled_ratio gauge
berth_thin_pool_filled_ratio{of="data",pool="vg0/thin"} 0.25
berth_thin_pool_filled_ratio{of="metadata",pool="vg0/thin"} 0.03
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "berth_thin_pool_filled_ratio"); err != nil {
		t.Error(err)
	}
}

func TestTrimsAreCountedByOutcomeAndTheLastOneIsShown(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	trims := NewTrims(registry)
	trims.Trimmed("vg0/thin", 3<<20, nil)
	trims.Trimmed("vg0/thin", 1<<20, fmt.Errorf("%w: it was unstaged", mount.ErrNotMounted))
	trims.Last("pvc-1", "vg0/thin", time.Unix(1000, 0))
	trims.Last("pvc-2", "vg0/thin", time.Unix(1000, 0))
	trims.Last("pvc-1", "vg0/thin", time.Unix(2000, 0))
	trims.Gone("pvc-2")
	want := `# HELP berth_agent_trimmed_bytes_total Bytes that filesystems have discarded in trims.
# TYPE berth_agent_trimmed_bytes_total counter
berth_agent_trimmed_bytes_total{pool="vg0/thin"} 4.194304e+06
# HELP berth_agent_trims_total Trims of filesystems that came to their end or were given up, by outcome.
# TYPE berth_agent_trims_total counter
berth_agent_trims_total{outcome="not_mounted",pool="vg0/thin"} 1
berth_agent_trims_total{outcome="ok",pool="vg0/thin"} 1
# HELP berth_volume_trimmed_timestamp_seconds When the filesystem of a volume was last trimmed to its end, in seconds since 1970.
# TYPE berth_volume_trimmed_timestamp_seconds gauge
berth_volume_trimmed_timestamp_seconds{pool="vg0/thin",volume="pvc-1"} 2000
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
