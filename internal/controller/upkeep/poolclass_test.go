package upkeep

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
)

// report is the report of a node with one pool of class "fast".
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
		n.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status}}
	}
}

func degraded(n *v1alpha1.StorageNode)  { n.Status.Pools[0].Health = v1alpha1.PoolDegraded }
func elsewhere(n *v1alpha1.StorageNode) { n.Status.Pools[0].Classes = []string{"slow"} }

func TestAClassCountsTheNodesThatServeIt(t *testing.T) {
	tests := map[string]struct {
		reports []v1alpha1.StorageNode
		nodes   int32
		message string
	}{
		"no node":                            {nil, 0, "no node serves this class: none that it selects has one of its pools in good health"},
		"one node":                           {[]v1alpha1.StorageNode{report()}, 1, "1 node serves this class"},
		"two nodes":                          {[]v1alpha1.StorageNode{report(), report(ready(metav1.ConditionTrue))}, 2, "2 nodes serve this class"},
		"a node that is not ready":           {[]v1alpha1.StorageNode{report(), report(ready(metav1.ConditionFalse))}, 1, "1 node serves this class"},
		"a pool that is degraded":            {[]v1alpha1.StorageNode{report(), report(degraded)}, 1, "1 node serves this class"},
		"a pool that serves another class":   {[]v1alpha1.StorageNode{report(), report(elsewhere)}, 1, "1 node serves this class"},
		"a node with two pools of the class": {[]v1alpha1.StorageNode{report(func(n *v1alpha1.StorageNode) { n.Status.Pools = append(n.Status.Pools, n.Status.Pools[0]) })}, 1, "1 node serves this class"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			class := &v1alpha1.PoolClass{}
			class.Name = "fast"
			if !assess(class, test.reports) {
				t.Error("the first look changed nothing")
			}
			c := meta.FindStatusCondition(class.Status.Conditions, v1alpha1.ConditionReady)
			if class.Status.Nodes != test.nodes || c == nil || c.Message != test.message {
				t.Errorf("nodes %d, condition %+v", class.Status.Nodes, c)
			}
			if (c.Status == metav1.ConditionTrue) != (test.nodes > 0) {
				t.Errorf("Ready is %s with %d nodes", c.Status, test.nodes)
			}
			if assess(class, test.reports) {
				t.Error("the same reports changed it again")
			}
			class.Status.Nodes = 7
			if !assess(class, test.reports) || class.Status.Nodes != test.nodes {
				t.Errorf("a number that others wrote stays: %d", class.Status.Nodes)
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
		"a node that comes":                    {none, node(), []string{"fast"}},
		"a node that goes":                     {node(), none, []string{"fast"}},
		"a pool that fills":                    {node(), node(fuller), nil},
		"a pool that degrades":                 {node(), node(degraded), []string{"fast"}},
		"a pool that is well again":            {node(degraded), node(), []string{"fast"}},
		"a pool that changes to another class": {node(), node(elsewhere), []string{"fast", "slow"}},
		"a node that is not ready any more":    {node(), node(ready(metav1.ConditionFalse)), []string{"fast"}},
		"a node that stays not ready":          {node(ready(metav1.ConditionFalse)), node(ready(metav1.ConditionFalse), elsewhere), nil},
	} {
		got := changed(test.before, test.after)
		if slices.Sort(got); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestAClassSaysHowManyNodesServeIt(t *testing.T) {
	class := &v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}
	report := aReport()
	report.Status.Pools = []v1alpha1.Pool{{Name: "vg", Health: v1alpha1.PoolHealthy, Classes: []string{"fast"}}}
	s := lagging.New(t, class, report)
	r := &PoolClasses{Client: s.Client()}
	s.Before = func(lagging.Write) error { return errBroken }
	if err := look(t, r, "fast"); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	s.Before = nil
	must(t, look(t, r, "fast"))
	if there(t, s, class); class.Status.Nodes != 1 {
		t.Errorf("%d nodes", class.Status.Nodes)
	}
	s.Before = func(lagging.Write) error { t.Error("it is written though nothing changed"); return nil }
	must(t, look(t, r, "fast"))
	must(t, look(t, r, "another"))
	if classes := changed(nil, report); !slices.Equal(classes, []string{"fast"}) {
		t.Errorf("got %v", classes)
	}
}

func TestAClassThatChangesOrGoesMeanwhileIsNoError(t *testing.T) {
	class := &v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}
	s := lagging.New(t, class)
	r := &PoolClasses{Client: s.Client()}
	s.Hold()
	there(t, s, class)
	class.Labels = map[string]string{"of": "others"}
	must(t, s.Others().Update(t.Context(), class))
	must(t, look(t, r, "fast")) // the event of the other write brings it back
	must(t, s.Others().Delete(t.Context(), class))
	must(t, look(t, r, "fast"))
}
