package report

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

func TestEverythingThatIsDescribedIsApplied(t *testing.T) {
	filled := quantity(3 * gib)
	full := v1alpha1.StorageNodeStatus{
		Summary:         &v1alpha1.StorageNodeSummary{Pools: "vg0/thin Degraded", LargestVolume: "2 GiB"},
		VolumesRevision: "77", Features: []string{v1alpha1.FeatureCopies, "Flight"},
		Pools: []v1alpha1.Pool{{
			Name: "vg0/thin", Provisioner: v1alpha1.ProvisionerLVMThin, Total: quantity(9 * gib), Foreign: quantity(gib),
			Filled: &filled, MetadataFilledPercent: 7, Media: v1alpha1.SSD,
			AllocationUnit: quantity(mib), LargestVolume: quantity(2 * gib), Classes: []string{"fast"},
			Inventory: []v1alpha1.InventoryItem{
				{Volume: "pvc-1", Allocated: quantity(gib), Orphan: &v1alpha1.Orphan{
					Since: metav1.Unix(1, 0), Deadline: &metav1.Time{Time: time.Unix(2, 0)}, Reason: v1alpha1.OrphanNoObject,
					Message: "nobody knows it", Size: quantity(gib), Filesystem: "ext4", Source: "snap-1",
				}},
				{Inline: &v1alpha1.InlineReference{PodUID: "uid", Name: "scratch"}, Allocated: quantity(gib)},
				{Snapshot: "snap-1", Allocated: quantity(gib)},
			},
			Health: v1alpha1.PoolDegraded, Message: "a disk is missing",
			LastChange: &v1alpha1.PoolChange{At: metav1.Unix(3, 0), Reason: v1alpha1.PoolGrown, Message: "it was grown"},
		}},
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Reporting", Message: "all is well", LastTransitionTime: metav1.NewTime(time.Unix(1, 0)),
		}},
	}
	fields := func(v any) (out map[string]any) {
		text, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(text, &out)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	short := v1alpha1.StorageNodeStatus{Summary: full.Summary}
	if diff := cmp.Diff(fields(short), fields(summarized(full.Summary))); diff != "" {
		t.Errorf("the API server is told something else in short: %s", diff)
	}
	full.Summary = nil // an older definition would refuse it, and all else with it
	want := fields(full)
	full.Summary = short.Summary
	if diff := cmp.Diff(want, fields(applied(full))); diff != "" {
		t.Errorf("the API server is told something else: %s", diff)
	}
}
