package notices

import (
	"context"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/decide/notice"
)

const day = 24 * 3600

func TestMain(m *testing.M) { apitest.Main(m) }

// told counts the events of a node, by reason.
func told(t *testing.T, c client.Client, node string) map[string]int {
	t.Helper()
	var list eventsv1.EventList
	if err := c.List(t.Context(), &list, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	reasons := map[string]int{}
	for _, e := range list.Items {
		if e.Regarding.Kind == "StorageNode" && e.Regarding.Name == node {
			reasons[e.Reason]++
		}
	}
	return reasons
}

func TestAnOrphanIsToldOfOnceHoweverOftenItIsLookedAt(t *testing.T) {
	env := apitest.Start(t)
	some := resource.MustParse("1Gi")
	n := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "notices"}}
	n.Status.Pools = []v1alpha1.Pool{{Name: "vg0", Provisioner: v1alpha1.ProvisionerLVM, Total: some, Foreign: some, AllocationUnit: some,
		LargestVolume: some, Health: v1alpha1.PoolHealthy, Inventory: []v1alpha1.InventoryItem{{Volume: "pvc-1", Allocated: some, Orphan: &v1alpha1.Orphan{
			Since: metav1.Unix(1, 0), Deadline: &metav1.Time{Time: time.Unix(3*day, 0)}, Reason: v1alpha1.OrphanNoObject, Size: some,
			Message: strings.Repeat("x", 1024), // the longest there is
		}}}}}
	status := n.Status
	if err := env.Client.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	n.Status = status
	if err := env.Client.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	asked := 0
	counting, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	c := interceptor.NewClient(counting, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		asked++
		return c.Create(ctx, o, opts...)
	}})
	now := testingclock.NewFakePassiveClock(time.Unix(10, 0))
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(n)}
	for life := range 2 {
		r := &Notices{Client: c, Clock: now, Instance: "test"}
		for range 3 {
			result, err := r.Reconcile(t.Context(), request)
			if err != nil || result.RequeueAfter != (2*day-10)*time.Second {
				t.Fatalf("again after %s, error %v", result.RequeueAfter, err)
			}
		}
		if got := told(t, env.Client, n.Name); asked != life+1 || got[notice.ReasonFound] != 1 || len(got) != 1 {
			t.Errorf("in life %d: %d requests, events %v", life, asked, got)
		}
	}
	now.SetTime(time.Unix(2*day+1, 0))
	if _, err := (&Notices{Client: c, Clock: now, Instance: "test"}).Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if got := told(t, env.Client, n.Name); got[notice.ReasonExpiring] != 1 || len(got) != 2 {
		t.Errorf("events %v", got)
	}
}

func TestAStorageNodeThatIsGoneIsNotToldOf(t *testing.T) {
	env := apitest.Start(t)
	r := &Notices{Client: env.Client, Clock: testingclock.NewFakePassiveClock(time.Unix(10, 0)), Instance: "test"}
	if result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "no-such-node"}}); err != nil || !result.IsZero() {
		t.Errorf("%+v, %v", result, err)
	}
}
