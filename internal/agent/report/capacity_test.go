package report

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/pools"
	"berth.dev/berth/internal/driver"
)

func TestCapacities(t *testing.T) {
	fast := []v1alpha1.PoolClass{class("fast", []string{"vg0", "vg1"}, spare("1Gi"))}
	foreign := storage("other", "fast")
	foreign.Provisioner = "other.example"
	misspelt := storage("misspelt", "fast")
	misspelt.Parameters["poolclass"] = "fast"
	tests := map[string]struct {
		facts    Facts
		snapshot pools.Latest
		want     map[string]string // StorageClass -> capacity
	}{
		"the capacity is the largest volume of one pool, in whole extents": {
			facts: facts(fast, storage("sc", "fast")), snapshot: seen(pool("vg0", free(3*gib)), pool("vg1", free(5*gib+mib))),
			want: map[string]string{"sc": "4Gi"}},
		"two StorageClasses of one PoolClass": {
			facts: facts(fast, storage("a", "fast"), storage("b", "fast")), snapshot: seen(pool("vg0")),
			want: map[string]string{"a": "9Gi", "b": "9Gi"}},
		"a pool with less than its spare has no capacity": {
			facts: facts(fast, storage("sc", "fast")), snapshot: seen(pool("vg0", free(mib))), want: map[string]string{"sc": "0"}},
		"a broken pool does not count": {
			facts: facts(fast, storage("sc", "fast")), snapshot: seen(pool("vg0", broken), pool("vg1", free(2*gib))),
			want: map[string]string{"sc": "1Gi"}},
		"the provisioner does not answer": {
			facts: facts(fast, storage("sc", "fast")), snapshot: pools.Latest{Pools: seen(pool("vg0")).Pools, Err: errors.New("away")},
			want: map[string]string{"sc": "0"}},
		"a class without a pool on this node": {
			facts: facts(fast, storage("sc", "fast")), snapshot: seen(pool("root")), want: map[string]string{}},
		"a class of an unknown PoolClass":           {facts: facts(fast, storage("sc", "slow")), snapshot: seen(pool("vg0")), want: map[string]string{}},
		"a class of another driver":                 {facts: facts(fast, foreign), snapshot: seen(pool("vg0")), want: map[string]string{}},
		"a class with a misspelt parameter":         {facts: facts(fast, misspelt), snapshot: seen(pool("vg0")), want: map[string]string{}},
		"a PoolClass that does not select the node": {facts: facts([]v1alpha1.PoolClass{class("fast", []string{"vg0"}, onlyOn("hdd"))}, storage("sc", "fast")), snapshot: seen(pool("vg0")), want: map[string]string{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, c := range Capacities(driver.Local(), tc.facts, tc.snapshot, "n1", "berth-system") {
				got[c.StorageClassName] = c.Capacity.String()
				checkCapacity(t, c)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func checkCapacity(t *testing.T, c storagev1.CSIStorageCapacity) {
	t.Helper()
	if !c.Capacity.Equal(*c.MaximumVolumeSize) {
		t.Errorf("capacity %s, maximum volume size %s", c.Capacity, c.MaximumVolumeSize)
	}
	if diff := cmp.Diff(map[string]string{v1alpha1.TopologyKey: "n1"}, c.NodeTopology.MatchLabels); diff != "" {
		t.Error(diff)
	}
	if c.Namespace != "berth-system" {
		t.Errorf("namespace %s", c.Namespace)
	}
}

func TestCapacityNamesAreDistinctAndStable(t *testing.T) {
	// A name that changed would leave the old object behind.
	if got, want := capacityName("n1", "a"), "berth-be9213d1f6b2021e9edf90c0742e4f27"; got != want {
		t.Errorf("name %s; want %s", got, want)
	}
	if capacityName("n1", "a") == capacityName("n1", "b") || capacityName("n1", "a") == capacityName("n2", "a") {
		t.Error("two names are the same")
	}
}

func TestADriverPublishesTheRoomForItsOwnClassesUnderItsOwnName(t *testing.T) {
	other := driver.Local()
	other.Name = "other.example"
	theirs := storage("theirs", "fast")
	theirs.Provisioner = other.Name
	f := facts([]v1alpha1.PoolClass{class("fast", []string{"vg0"})}, storage("ours", "fast"), theirs)
	for class, d := range map[string]driver.Driver{"ours": driver.Local(), "theirs": other} {
		got := Capacities(d, f, seen(pool("vg0")), "n1", "berth-system")
		if len(got) != 1 || got[0].StorageClassName != class || !OwnCapacities(d, "n1").Matches(labels.Set(got[0].Labels)) {
			t.Errorf("%s publishes %+v", d.Name, got)
			continue
		}
		for _, another := range []driver.Driver{driver.Local(), other} {
			if own := another.Name == d.Name; OwnCapacities(another, "n1").Matches(labels.Set(got[0].Labels)) != own {
				t.Errorf("%s takes the capacity of %s for its own: %v", another.Name, d.Name, !own)
			}
		}
	}
	other.Capacity = false
	if got := Capacities(other, f, seen(pool("vg0")), "n1", "berth-system"); len(got) > 0 {
		t.Errorf("a driver whose room is the same on all nodes publishes %+v", got)
	}
}
