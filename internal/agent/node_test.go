package agent

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

func TestANodeIsNewsWhenItsLabelsAreAndNotWhenItsStatusIs(t *testing.T) {
	node := func(version string, uid types.UID, labels map[string]string) *metav1.PartialObjectMetadata {
		o := nodeMetadata()
		o.Name, o.ResourceVersion, o.UID, o.Labels = "n", version, uid, labels
		return o
	}
	ssd, hdd := map[string]string{"disks": "ssd"}, map[string]string{"disks": "hdd"}
	for name, tc := range map[string]struct {
		event func(h toolscache.ResourceEventHandler)
		told  int
	}{
		"the watch sees the node for the first time": {func(h toolscache.ResourceEventHandler) { h.OnAdd(node("1", "a", ssd), true) }, 1},
		"the kubelet writes the status of the node":  {func(h toolscache.ResourceEventHandler) { h.OnUpdate(node("1", "a", ssd), node("2", "a", ssd)) }, 0},
		"the labels of the node change":              {func(h toolscache.ResourceEventHandler) { h.OnUpdate(node("1", "a", ssd), node("2", "a", hdd)) }, 1},
		"the node gets its first labels":             {func(h toolscache.ResourceEventHandler) { h.OnUpdate(node("1", "a", nil), node("2", "a", hdd)) }, 1},
		"a new node takes the name":                  {func(h toolscache.ResourceEventHandler) { h.OnUpdate(node("1", "a", ssd), node("2", "b", ssd)) }, 1},
		"the node is deleted":                        {func(h toolscache.ResourceEventHandler) { h.OnDelete(node("1", "a", ssd)) }, 1},
		"the watch missed the deletion of the node": {func(h toolscache.ResourceEventHandler) {
			h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: node("1", "a", ssd)})
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			told := 0
			tc.event(onNode(func() { told++ }))
			if told != tc.told {
				t.Errorf("told %d times, want %d", told, tc.told)
			}
		})
	}
}
