package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/agent/pools"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/provision"
)

// line is a pool in a form that is easy to read.
func line(p v1alpha1.Pool) string {
	return fmt.Sprintf("%s %s largest %s of %s, classes %v", p.Name, p.Health, p.LargestVolume.String(), p.Total.String(), p.Classes)
}

func TestTheFillOfAThinPoolIsSaidInHundredths(t *testing.T) {
	thin := pool("vg0/thin")
	thin.Type, thin.Total = provision.LVMThin, 100*gib
	for name, tc := range map[string]struct {
		data     int64
		metadata int
		filled   string
		percent  int32
	}{
		"a byte counts as a hundredth":      {1, 1, "1Gi", 1},
		"a hundredth counts as a hundredth": {gib, 1, "1Gi", 1},
		"half":                              {50 * gib, 2, "50Gi", 2},
		"a little more than half":           {50*gib + 1, 2, "51Gi", 2},
		"a full pool":                       {100 * gib, 100, "100Gi", 100},
		"a metadata fill of more than 100 percent is cut": {100 * gib, 101, "100Gi", 100},
	} {
		t.Run(name, func(t *testing.T) {
			thin.Fill = provision.Fill{Data: tc.data, Metadata: tc.metadata}
			got := describePool(thin, Facts{})
			if got.Filled.String() != tc.filled || got.MetadataFilledPercent != tc.percent {
				t.Errorf("filled %s and %d%%, want %s and %d%%", got.Filled, got.MetadataFilledPercent, tc.filled, tc.percent)
			}
		})
	}
	if got := describePool(pool("vg0"), Facts{}); got.Filled != nil {
		t.Errorf("a volume group says that it is filled with %s", got.Filled)
	}
}

func TestAPoolThatIsMissingIsOfTheTypeThatItsNameSays(t *testing.T) {
	for name, want := range map[string]v1alpha1.ProvisionerType{"vg0": "LVM", "vg0/thin": "LVMThin", "disk:eui.1": "Device", "zfs:tank/berth": "ZFS"} {
		if got := missingPool(name).Provisioner; got != want {
			t.Errorf("%s is of type %s, want %s", name, got, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	expecting := func(f Facts, names ...string) Facts { f.Expected = names; return f }
	tests := map[string]struct {
		facts    Facts
		snapshot pools.Latest
		want     []string
		ready    string
	}{
		"pools of a class, in order": {
			facts:    facts([]v1alpha1.PoolClass{class("slow", []string{"vg1", "vg0"}), class("fast", []string{"vg0"})}),
			snapshot: seen(pool("vg1"), pool("vg0", free(gib+mib))),
			want:     []string{"vg0 Healthy largest 1Gi of 10Gi, classes [fast slow]", "vg1 Healthy largest 10Gi of 10Gi, classes [slow]"},
			ready:    "True"},
		"a pool without a class is left out": {
			facts: facts(nil), snapshot: seen(pool("root")), ready: "True"},
		"an unreadable pool is shown": {
			facts: facts(nil), snapshot: seen(pool("root"), pool("zfs:tank", broken, func(p *provision.Pool) { p.Total, p.Free = 0, 0 })),
			want: []string{"zfs:tank Degraded largest 0 of 0, classes []"}, ready: "True"},
		"a class that selects other nodes does not count": {
			facts:    facts([]v1alpha1.PoolClass{class("hdd", []string{"vg0"}, onlyOn("hdd")), class("ssd", []string{"vg0"}, onlyOn("ssd"))}),
			snapshot: seen(pool("vg0")), want: []string{"vg0 Healthy largest 10Gi of 10Gi, classes [ssd]"}, ready: "True"},
		"spare bytes are kept": {
			facts:    facts([]v1alpha1.PoolClass{class("fast", []string{"vg0"}, spare("9Gi"))}),
			snapshot: seen(pool("vg0")), want: []string{"vg0 Healthy largest 1Gi of 10Gi, classes [fast]"}, ready: "True"},
		"a broken pool takes no volume": {
			facts:    facts([]v1alpha1.PoolClass{class("fast", []string{"vg0"})}),
			snapshot: seen(pool("vg0", broken)), want: []string{"vg0 Degraded largest 0 of 10Gi, classes [fast]"}, ready: "True"},
		"a pool that vanished with volumes in it is shown": {
			facts:    expecting(facts([]v1alpha1.PoolClass{class("fast", []string{"vg0"})}), "vg0"),
			snapshot: seen(), want: []string{"vg0 Missing largest 0 of 0, classes []"}, ready: "True"},
		"a pool with volumes stays although its class is gone": {
			facts:    expecting(facts(nil), "vg0"),
			snapshot: seen(pool("vg0")), want: []string{"vg0 Healthy largest 0 of 10Gi, classes []"}, ready: "True"},
		"a pool with volumes that cannot be asked is not said to be missing": {
			facts:    expecting(facts(nil), "vg1"),
			snapshot: pools.Latest{Silent: errors.New("lvm hangs")}, want: []string{"vg1 Degraded largest 0 of 0, classes []"}, ready: "True"},
		"a provisioner that does not answer": {
			facts:    facts([]v1alpha1.PoolClass{class("fast", []string{"vg0"})}),
			snapshot: pools.Latest{Pools: seen(pool("vg0")).Pools, Err: errors.New("lvm hangs")},
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
			if c := got.Conditions[0]; c.Type != v1alpha1.ConditionReady || string(c.Status) != tc.ready || c.Reason == "" {
				t.Errorf("condition %+v; want Ready %s", c, tc.ready)
			}
		})
	}
}

func TestPoolsThatCannotBeAskedAreNamedAndTheOthersKeepTheirCapacity(t *testing.T) {
	f := facts([]v1alpha1.PoolClass{class("fast", []string{"vg0"})}, storage("fast", "fast"))
	unread := pool("zfs:tank", broken, func(p *provision.Pool) { p.Total, p.Free = 0, 0 })
	for name, tc := range map[string]struct {
		snapshot pools.Latest
		want     string
	}{
		"all provisioners answer":       {seen(pool("vg0")), ""},
		"a provisioner does not answer": {pools.Latest{Pools: seen(pool("vg0")).Pools, Silent: errors.New("pools of type ZFS: no answer")}, "pools of type ZFS: no answer"},
		"a pool was never read":         {seen(pool("vg0"), unread), "zfs:tank: " + unread.Problem},
	} {
		t.Run(name, func(t *testing.T) {
			conditions := Describe(f, tc.snapshot).Conditions
			if conditions[0].Type != v1alpha1.ConditionReady || conditions[0].Status != "True" || (len(conditions) > 1) != (tc.want != "") {
				t.Fatalf("conditions %+v", conditions)
			}
			if tc.want != "" && (conditions[1].Type != v1alpha1.ConditionSilent || conditions[1].Status != "True" || !strings.HasSuffix(conditions[1].Message, tc.want)) {
				t.Errorf("condition %+v, want one that says %q", conditions[1], tc.want)
			}
			got := Capacities(driver.Local(), f, tc.snapshot, "node", "berth")
			if len(got) != 1 || got[0].Capacity.Value() != 10*gib {
				t.Errorf("capacities %+v", got)
			}
		})
	}
}

func TestOrphansAreShownByName(t *testing.T) {
	f := facts(nil)
	f.Orphans = map[string]orphans.Orphan{"pvc-2": {}, "pvc-1": {}}
	got := Describe(f, seen())
	if len(got.Conditions) != 2 || got.Conditions[1].Type != v1alpha1.ConditionOrphaned || !strings.HasSuffix(got.Conditions[1].Message, ": pvc-1, pvc-2") {
		t.Fatalf("conditions %+v", got.Conditions)
	}
	if len(Describe(facts(nil), seen()).Conditions) != 1 {
		t.Error("a node without orphans has the condition")
	}
}
