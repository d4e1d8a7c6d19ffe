package notice

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

// thin is a node with a thin pool of 10 GiB.
func thin(change func(*v1alpha1.Pool)) *v1alpha1.StorageNode {
	n := node("n1")
	p := &n.Status.Pools[0]
	p.Name, p.Provisioner, p.Classes = "vg0/thin", v1alpha1.ProvisionerLVMThin, []string{"thin"}
	change(p)
	return n
}

func filled(data string, metadata int32) func(*v1alpha1.Pool) {
	return func(p *v1alpha1.Pool) { p.Filled, p.MetadataFilledPercent = new(resource.MustParse(data)), metadata }
}

func changedAt(reason v1alpha1.PoolChangeReason, at int64) func(*v1alpha1.Pool) {
	return func(p *v1alpha1.Pool) {
		p.LastChange = &v1alpha1.PoolChange{At: metav1.Unix(at, 0), Reason: reason, Message: "thin pool vg0/thin was extended"}
	}
}

func condition(status metav1.ConditionStatus, reason string, at int64) *v1alpha1.StorageNode {
	n := node("n1")
	n.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionPoolsManaged, Status: status, Reason: reason, Message: "why", LastTransitionTime: metav1.Unix(at, 0),
	}}
	return n
}

func TestNoticesReportFullPoolsChangesAndUnmetRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		node *v1alpha1.StorageNode
		want []string
	}{
		"a thin pool with room":                                 {thin(filled("7Gi", 79)), nil},
		"a thin pool that fills up":                             {thin(filled("8Gi", 11)), []string{"Warning ThinPoolFilling"}},
		"a thin pool that is nearly full":                       {thin(filled("9Gi", 11)), []string{"Warning ThinPoolNearlyFull"}},
		"metadata of a thin pool that fills up":                 {thin(filled("1Gi", 85)), []string{"Warning ThinPoolFilling"}},
		"data and metadata of a thin pool that are nearly full": {thin(filled("10Gi", 95)), []string{"Warning ThinPoolNearlyFull", "Warning ThinPoolNearlyFull"}},
		"a full thin pool without a class":                      {thin(func(p *v1alpha1.Pool) { filled("9Gi", 99)(p); p.Classes = nil }), nil},
		"a pool that was extended just now":                     {thin(changedAt(v1alpha1.PoolExtended, 1000)), []string{"Normal PoolExtended"}},
		"a zpool that was imported just now":                    {thin(changedAt(v1alpha1.PoolImported, 1000)), []string{"Normal PoolImported"}},
		"a pool that was made long ago":                         {thin(changedAt(v1alpha1.PoolMade, -3600)), nil},
		"the pools are as wanted":                               {condition(metav1.ConditionTrue, "AsAsked", 1000), nil},
		"a foreign volume group":                                {condition(metav1.ConditionFalse, "Foreign", 1000), []string{"Warning PoolsNotAsAsked"}},
		"a volume group that has been foreign for long":         {condition(metav1.ConditionFalse, "Foreign", -3600), []string{"Warning PoolsNotAsAsked"}},
		"a node without disks is no concern":                    {condition(metav1.ConditionFalse, "AwaitsDisks", 1000), nil},
	} {
		t.Run(name, func(t *testing.T) {
			notices, next := Due(tc.node, time.Unix(1001, 0))
			var got []string
			names := map[string]bool{}
			for _, n := range notices {
				got = append(got, n.Type+" "+n.Reason)
				names[n.Name] = true
				if n.Message == "" || n.Action == "" || !strings.HasPrefix(n.Name, "berth-pool-") {
					t.Errorf("told %+v", n)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || next != 0 || len(names) != len(notices) {
				t.Errorf("%s again in %s, names %v", diff, next, names)
			}
		})
	}
}

func TestAThresholdIsToldOfOnceHoweverFarAPoolIsBeyond(t *testing.T) {
	first, _ := Due(thin(filled("8Gi", 1)), time.Unix(10, 0))
	later, _ := Due(thin(filled("8.5Gi", 2)), time.Unix(10000, 0))
	if diff := cmp.Diff(first, later); diff != "" {
		t.Error(diff)
	}
	higher, _ := Due(thin(filled("9Gi", 2)), time.Unix(10000, 0))
	if higher[0].Name == first[0].Name {
		t.Error("the next threshold is not told of")
	}
}
