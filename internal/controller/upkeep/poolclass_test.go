package upkeep

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// report is a node with one pool of class "fast".
func report(options ...func(*v1alpha1.StorageNode)) v1alpha1.StorageNode {
	n := v1alpha1.StorageNode{}
	n.Status.Pools = []v1alpha1.Pool{{Name: "vg", Health: v1alpha1.PoolHealthy, Classes: []string{"fast"}}}
	for _, option := range options {
		option(&n)
	}
	return n
}

func ready(status metav1.ConditionStatus) func(*v1alpha1.StorageNode) {
	return func(n *v1alpha1.StorageNode) {
		n.Status.Conditions = []metav1.Condition{{Type: ConditionReady, Status: status}}
	}
}

func degraded(n *v1alpha1.StorageNode)  { n.Status.Pools[0].Health = v1alpha1.PoolDegraded }
func elsewhere(n *v1alpha1.StorageNode) { n.Status.Pools[0].Classes = []string{"slow"} }

func TestWhoServesAClass(t *testing.T) {
	tests := map[string]struct {
		reports []v1alpha1.StorageNode
		nodes   int32
		message string
	}{
		"nobody":                       {nil, 0, "no node serves this class: none that it selects has one of its pools in good health"},
		"one node":                     {[]v1alpha1.StorageNode{report()}, 1, "1 node serves this class"},
		"two nodes":                    {[]v1alpha1.StorageNode{report(), report(ready(metav1.ConditionTrue))}, 2, "2 nodes serve this class"},
		"a node that is not ready":     {[]v1alpha1.StorageNode{report(), report(ready(metav1.ConditionFalse))}, 1, "1 node serves this class"},
		"a pool that is degraded":      {[]v1alpha1.StorageNode{report(), report(degraded)}, 1, "1 node serves this class"},
		"a pool that serves others":    {[]v1alpha1.StorageNode{report(), report(elsewhere)}, 1, "1 node serves this class"},
		"a node with two of its pools": {[]v1alpha1.StorageNode{report(func(n *v1alpha1.StorageNode) { n.Status.Pools = append(n.Status.Pools, n.Status.Pools[0]) })}, 1, "1 node serves this class"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			class := &v1alpha1.PoolClass{}
			class.Name = "fast"
			if !assess(class, test.reports) {
				t.Error("the first look changed nothing")
			}
			c := meta.FindStatusCondition(class.Status.Conditions, ConditionReady)
			if class.Status.Nodes != test.nodes || c == nil || c.Message != test.message {
				t.Errorf("nodes %d, condition %+v", class.Status.Nodes, c)
			}
			if (c.Status == metav1.ConditionTrue) != (test.nodes > 0) {
				t.Errorf("Ready is %s with %d nodes", c.Status, test.nodes)
			}
			if assess(class, test.reports) {
				t.Error("the same reports changed it again")
			}
		})
	}
}

func TestOnlyAReportThatBeginsOrCeasesToServeAClassHasItCounted(t *testing.T) {
	node := func(options ...func(*v1alpha1.StorageNode)) client.Object { n := report(options...); return &n }
	fuller := func(n *v1alpha1.StorageNode) { n.Status.Pools[0].Foreign.Set(1) }
	none := client.Object(nil)
	for name, test := range map[string]struct {
		before, after client.Object
		want          []string
	}{
		"a node that comes":                 {none, node(), []string{"fast"}},
		"a node that goes":                  {node(), none, []string{"fast"}},
		"a pool that fills":                 {node(), node(fuller), nil},
		"a pool that degrades":              {node(), node(degraded), []string{"fast"}},
		"a pool that is well again":         {node(degraded), node(), []string{"fast"}},
		"a pool that serves another class":  {node(), node(elsewhere), []string{"fast", "slow"}},
		"a node that is not ready any more": {node(), node(ready(metav1.ConditionFalse)), []string{"fast"}},
		"a node that stays not ready":       {node(ready(metav1.ConditionFalse)), node(ready(metav1.ConditionFalse), elsewhere), nil},
	} {
		if got := changed(test.before, test.after); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
