package report

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/pools"
)

// line is a pool in a form that is easy to read.
func line(p v1alpha1.Pool) string {
	return fmt.Sprintf("%s %s largest %s of %s, classes %v", p.Name, p.Health, p.LargestVolume.String(), p.Total.String(), p.Classes)
}

func TestDescribe(t *testing.T) {
	expecting := func(f Facts, names ...string) Facts { f.Expected = names; return f }
	tests := map[string]struct {
		facts    Facts
		snapshot pools.Snapshot
		want     []string
		ready    string
	}{
		"pools of a class, in order": {
			facts:    facts([]v1alpha1.PoolClass{class("slow", []string{"vg1", "vg0"}), class("fast", []string{"vg0"})}),
			snapshot: seen(pool("vg1"), pool("vg0", free(gib+mib))),
			want:     []string{"vg0 Healthy largest 1Gi of 10Gi, classes [fast slow]", "vg1 Healthy largest 10Gi of 10Gi, classes [slow]"},
			ready:    "True"},
		"a pool of no class is left out": {
			facts: facts(nil), snapshot: seen(pool("root")), ready: "True"},
		"a class for other nodes does not count": {
			facts:    facts([]v1alpha1.PoolClass{class("hdd", []string{"vg0"}, onlyOn("hdd")), class("ssd", []string{"vg0"}, onlyOn("ssd"))}),
			snapshot: seen(pool("vg0")), want: []string{"vg0 Healthy largest 10Gi of 10Gi, classes [ssd]"}, ready: "True"},
		"spare bytes are kept": {
			facts:    facts([]v1alpha1.PoolClass{class("fast", []string{"vg0"}, spare("9Gi"))}),
			snapshot: seen(pool("vg0")), want: []string{"vg0 Healthy largest 1Gi of 10Gi, classes [fast]"}, ready: "True"},
		"a broken pool takes nothing": {
			facts:    facts([]v1alpha1.PoolClass{class("fast", []string{"vg0"})}),
			snapshot: seen(pool("vg0", broken)), want: []string{"vg0 Degraded largest 0 of 10Gi, classes [fast]"}, ready: "True"},
		"a pool that vanished with volumes in it is shown": {
			facts:    expecting(facts([]v1alpha1.PoolClass{class("fast", []string{"vg0"})}), "vg0"),
			snapshot: seen(), want: []string{"vg0 Missing largest 0 of 0, classes []"}, ready: "True"},
		"a pool with volumes stays although its class is gone": {
			facts:    expecting(facts(nil), "vg0"),
			snapshot: seen(pool("vg0")), want: []string{"vg0 Healthy largest 0 of 10Gi, classes []"}, ready: "True"},
		"a provisioner that does not answer": {
			facts:    facts([]v1alpha1.PoolClass{class("fast", []string{"vg0"})}),
			snapshot: pools.Snapshot{Pools: seen(pool("vg0")).Pools, Err: errors.New("lvm hangs")},
			want:     []string{"vg0 Healthy largest 10Gi of 10Gi, classes [fast]"}, ready: "False"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Describe(tc.facts, tc.snapshot)
			var lines []string
			for _, p := range got.Pools {
				lines = append(lines, line(p))
				if (p.Health == v1alpha1.PoolHealthy) != (p.Message == "") {
					t.Errorf("pool %s is %s and says %q", p.Name, p.Health, p.Message)
				}
			}
			if diff := cmp.Diff(tc.want, lines); diff != "" {
				t.Error(diff)
			}
			if c := got.Conditions[0]; c.Type != Ready || string(c.Status) != tc.ready || c.Reason == "" {
				t.Errorf("condition %+v; want Ready %s", c, tc.ready)
			}
		})
	}
}

func TestOrphansAreShownByName(t *testing.T) {
	f := facts(nil)
	f.Orphans = []string{"pvc-1", "pvc-2"}
	got := Describe(f, seen())
	if len(got.Conditions) != 2 || got.Conditions[1].Type != Orphaned {
		t.Fatalf("conditions %+v", got.Conditions)
	}
	if len(Describe(facts(nil), seen()).Conditions) != 1 {
		t.Error("a node without orphans has the condition")
	}
}
