package controller_test

import (
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/decide/notice"
)

func TestAnOrphanThatANodeReportsIsToldOf(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	report := &v1alpha1.StorageNode{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: n.Name}, report); err != nil {
		t.Fatal(err)
	}
	size := resource.MustParse("1Gi")
	report.Status.Pools[0].Inventory = []v1alpha1.InventoryItem{{Volume: v1alpha1.VolumeName(n.Name), Allocated: size, Orphan: &v1alpha1.Orphan{
		Since: metav1.NewTime(time.Now()), Reason: v1alpha1.OrphanNoObject, Size: size,
	}}}
	if err := c.Client.Status().Update(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	controllertest.Start(t, c.Environment)
	await(t, "the event", func() bool {
		var list eventsv1.EventList
		if err := c.Client.List(t.Context(), &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			if e.Regarding.Name == n.Name && e.Reason == notice.ReasonFound {
				return true
			}
		}
		return false
	})
}
