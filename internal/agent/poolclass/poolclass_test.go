package poolclass

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

const unit = int64(4 << 20)

var vg0 = provision.PoolRef{Type: "LVM", Name: "vg0"}

type option func(*v1alpha1.PoolClass)

// fast is a class over vg0 on all nodes.
func fast(options ...option) *v1alpha1.PoolClass {
	c := &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: []string{"vg9", "vg0"}},
	}}
	for _, o := range options {
		o(c)
	}
	return c
}

func spare(size string) option {
	return func(c *v1alpha1.PoolClass) { c.Spec.Spare = new(resource.MustParse(size)) }
}

func percent(n int32) option { return func(c *v1alpha1.PoolClass) { c.Spec.SparePercent = n } }

func on(s metav1.LabelSelector) option {
	return func(c *v1alpha1.PoolClass) { c.Spec.NodeSelector = &s }
}

func TestAPoolServesAClassThatNamesItOnANodeThatTheClassSelects(t *testing.T) {
	ssd := metav1.LabelSelector{MatchLabels: map[string]string{"ssd": "yes"}}
	unreadable := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "ssd", Operator: "Resembles"}}}
	for name, tc := range map[string]struct {
		class *v1alpha1.PoolClass
		pool  provision.PoolRef
		node  map[string]string
		want  bool
	}{
		"a pool that is named":                {fast(), vg0, nil, true},
		"a pool that is not named":            {fast(), provision.PoolRef{Type: "LVM", Name: "vg1"}, nil, false},
		"a pool of another provisioner":       {fast(), provision.PoolRef{Type: "ZFS", Name: "vg0"}, nil, false},
		"a node that is selected":             {fast(on(ssd)), vg0, map[string]string{"ssd": "yes"}, true},
		"a node that is not selected":         {fast(on(ssd)), vg0, map[string]string{"ssd": "no"}, false},
		"a node of which nothing is known":    {fast(on(ssd)), vg0, nil, false},
		"a selector that cannot be read":      {fast(on(unreadable)), vg0, map[string]string{"ssd": "yes"}, false},
		"a class without pools":               {&v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{Provisioner: "LVM"}}, vg0, nil, false},
		"an empty selector selects all nodes": {fast(on(metav1.LabelSelector{})), vg0, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Serves(tc.class, tc.pool, tc.node); got != tc.want {
				t.Errorf("Serves is %v", got)
			}
		})
	}
}

func TestRoomIsWhatIsFreeLessTheSpareInWholeUnits(t *testing.T) {
	empty := provision.Pool{PoolRef: vg0, Total: 100 * unit, Free: 100 * unit, Unit: unit}
	used := provision.Pool{PoolRef: vg0, Total: 100 * unit, Free: 30 * unit, Unit: unit}
	broken := empty
	broken.Problem = "a disk is missing"
	for name, tc := range map[string]struct {
		class *v1alpha1.PoolClass
		pool  provision.Pool
		want  int64
	}{
		"no spare":                        {fast(), empty, 100 * unit},
		"a spare of a byte takes a unit":  {fast(spare("1")), empty, 99 * unit},
		"percent count of the total size": {fast(percent(10)), used, 20 * unit},
		"bytes and percent count both":    {fast(spare("4Mi"), percent(10)), used, 19 * unit},
		"more spare than is free":         {fast(percent(50)), used, 0},
		"a pool with a problem":           {fast(), broken, 0},
		"a pool of which nothing is read": {fast(), provision.Pool{PoolRef: vg0}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Room(tc.class, tc.pool); got != tc.want {
				t.Errorf("room %d, want %d", got, tc.want)
			}
		})
	}
}
