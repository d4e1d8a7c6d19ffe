package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/pools"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/provision"
)

// shelf is a report of n volume groups, all of one class.
func shelf(n int) (v1alpha1.PoolClass, pools.Latest) {
	var names []string
	var s pools.Latest
	for i := range n {
		names = append(names, fmt.Sprintf("vg%03d", i))
		s.Pools = append(s.Pools, pool(names[i]))
	}
	return class("fast", names), s
}

func TestAReportThatFitsIsWhole(t *testing.T) {
	c, s := shelf(maxPools)
	got := Describe(facts([]v1alpha1.PoolClass{c}), s)
	if len(got.Pools) != maxPools || meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionPoolsLeftOut) != nil {
		t.Errorf("%d pools, conditions %+v", len(got.Pools), got.Conditions)
	}
}

func TestOfTooManyPoolsThoseWithVolumesAreReportedAndTheConditionSaysSo(t *testing.T) {
	c, s := shelf(maxPools + 10)
	last := len(s.Pools) - 1
	s.Pools[last].Volumes = []provision.Volume{{ID: "pvc-1", Pool: s.Pools[last].PoolRef, Size: gib}}
	f := facts([]v1alpha1.PoolClass{c}, storage("fast", "fast"))
	// Its Volume accounts for it, and does not report it yet.
	f.Accounted = map[replica]bool{{"pvc-1", s.Pools[last].Name}: true}
	f.Expected = []string{s.Pools[last-1].Name, "vg-away"}
	got := Describe(f, s)
	has := func(name string) bool {
		return slices.ContainsFunc(got.Pools, func(p v1alpha1.Pool) bool { return p.Name == name })
	}
	if len(got.Pools) != maxPools || !has(s.Pools[last].Name) || !has(s.Pools[last-1].Name) || !has("vg-away") || has(s.Pools[last-2].Name) {
		t.Errorf("%d pools are reported: %+v", len(got.Pools), got.Pools)
	}
	if !slices.IsSortedFunc(got.Pools, func(a, b v1alpha1.Pool) int { return compare(a.Name, b.Name) }) {
		t.Error("they are not in order")
	}
	left := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionPoolsLeftOut)
	if left == nil || left.Status != "True" || !strings.Contains(left.Message, "267 pools") || !strings.Contains(left.Message, "vg253") {
		t.Errorf("conditions %+v", got.Conditions)
	}
	if c := Capacities(driver.Local(), f, s, "n1", "berth"); len(c) != 1 || c[0].Capacity.Value() != 10*gib {
		t.Errorf("capacities %+v", c)
	}
}

func TestOfTooManyClassesThoseFirstByNameAreReported(t *testing.T) {
	var classes []v1alpha1.PoolClass
	for i := range maxClasses + 1 {
		classes = append(classes, class(fmt.Sprintf("c%03d", i), []string{"vg0"}))
	}
	got := Describe(facts(classes), seen(pool("vg0")))
	if c := got.Pools[0].Classes; len(c) != maxClasses || c[0] != "c000" {
		t.Errorf("classes %v", c)
	}
	left := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionPoolsLeftOut)
	if left == nil || !strings.Contains(left.Message, "pool vg0 serves 65 classes") || !strings.Contains(left.Message, "c064") {
		t.Errorf("conditions %+v", got.Conditions)
	}
}
