package report

import (
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// wiping puts deleted volumes of a GiB each that are not wiped yet into a pool.
func wiping(problem string, ids ...string) poolOption {
	return func(p *provision.Pool) {
		for _, id := range ids {
			p.Wiping = append(p.Wiping, provision.Volume{ID: id, Pool: p.PoolRef, Size: gib, Problem: problem})
			p.Free -= gib
		}
	}
}

func TestDataThatIsBeingWipedTakesRoomUnderItsVolumesName(t *testing.T) {
	for name, volumes := range map[string][]v1alpha1.Volume{
		"the Volume is gone":                   nil,
		"the Volume reports the replica gone":  {onNode("pvc-1", "", saying("n1", "vg0", v1alpha1.ReplicaGone))},
		"the Volume still reports the replica": {onNode("pvc-1", "vg0", saying("n1", "vg0", v1alpha1.ReplicaReady))},
		"the Volume is placed in another pool": {onNode("pvc-1", "vg9")},
	} {
		items, rest := Facts{Accounted: accountedFor(volumes, "n1")}.inventory(pool("vg0", wiping("", "pvc-1")))
		if len(items) != 1 || items[0].Volume != "pvc-1" || items[0].Allocated.Value() != gib || rest != 0 {
			t.Errorf("%s: %+v, rest %d", name, items, rest)
		}
	}
}

func TestAPoolOfNoClassIsReportedWhileSomethingIsWipedInIt(t *testing.T) {
	got := Describe(facts(nil), seen(pool("vg0", wiping("", "pvc-1"))))
	if len(got.Pools) != 1 || got.Pools[0].Health != v1alpha1.PoolHealthy || len(got.Conditions) != 1 {
		t.Errorf("described as %+v", got)
	}
}

func TestDataThatCannotBeWipedIsReportedAsACondition(t *testing.T) {
	got := Describe(facts([]v1alpha1.PoolClass{class("fast", []string{"vg0"})}),
		seen(pool("vg0", wiping("a broken sector", "pvc-1", "pvc-2"), wiping("", "pvc-3"))))
	if len(got.Conditions) != 2 {
		t.Fatalf("conditions %+v", got.Conditions)
	}
	c := got.Conditions[1]
	for _, want := range []string{"2Gi", "pvc-1 in pool vg0 (a broken sector)", "pvc-2"} {
		if !strings.Contains(c.Message, want) {
			t.Errorf("%q lacks %q", c.Message, want)
		}
	}
	if c.Type != v1alpha1.ConditionUnwiped || c.Status != "True" || c.Reason == "" || strings.Contains(c.Message, "pvc-3") {
		t.Errorf("condition %+v", c)
	}
	// The rest of the pool still serves.
	if p := got.Pools[0]; p.Health != v1alpha1.PoolHealthy || p.LargestVolume.Value() != 7*gib {
		t.Errorf("pool %+v", p)
	}
}
