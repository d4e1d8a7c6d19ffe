package upkeep

import (
	"context"
	"errors"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
)

// published is a capacity of a node, in Berth's namespace.
func published(node string) *storagev1.CSIStorageCapacity {
	return &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{
		Namespace: "berth", Name: "berth-" + node, Labels: driver.Local().CapacityLabels(node),
	}}
}

// market is a cluster with two nodes that publish, and one that publishes elsewhere.
type market struct {
	client.Client
	t        *testing.T
	silent   bool
	requests int
	fail     error
	r        *Capacities
}

func newMarket(t *testing.T) *market {
	t.Helper()
	m := &market{t: t}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	foreign := published("n")
	foreign.Namespace = "others"
	m.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, published("n"), published("m"), foreign,
	).WithInterceptorFuncs(interceptor.Funcs{
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteAllOfOption) error {
			m.requests++
			if m.fail != nil {
				return m.fail
			}
			return c.DeleteAllOf(ctx, o, opts...)
		},
	}).Build()
	m.r = &Capacities{Driver: driver.Local(), Client: m.Client, Namespace: "berth", Silence: func(string) (bool, time.Duration) { return m.silent, 30 * time.Second }}
	return m
}

func (m *market) look(silent bool) (time.Duration, error) {
	m.t.Helper()
	m.silent = silent
	return m.lookAt("n")
}

func (m *market) lookAt(node string) (time.Duration, error) {
	m.t.Helper()
	result, err := m.r.Reconcile(m.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: node}})
	return result.RequeueAfter, err
}

// wantLeft checks which nodes still have capacities.
func (m *market) wantLeft(want ...string) {
	m.t.Helper()
	var list storagev1.CSIStorageCapacityList
	if err := m.List(m.t.Context(), &list); err != nil {
		m.t.Fatal(err)
	}
	if len(list.Items) != len(want) {
		m.t.Errorf("%d capacities are left, want %v", len(list.Items), want)
		return
	}
	for i, c := range list.Items {
		if got := c.Namespace + "/" + c.Name; got != want[i] {
			m.t.Errorf("%s is left, want %s", got, want[i])
		}
	}
}

func TestTheCapacityOfASilentAgentIsWithdrawn(t *testing.T) {
	m := newMarket(t)
	if again, err := m.look(false); err != nil || again != 31*time.Second {
		t.Errorf("looks again after %s, %v; want when it would be silent", again, err)
	}
	m.wantLeft("berth/berth-m", "berth/berth-n", "others/berth-n")
	if again, err := m.look(true); err != nil || again == 0 {
		t.Errorf("looks again after %s, %v", again, err)
	}
	m.wantLeft("berth/berth-m", "others/berth-n")
}

func TestItIsWithdrawnOnceEachTimeThatAnAgentFallsSilent(t *testing.T) {
	m := newMarket(t)
	m.fail = errors.New("no answer")
	if _, err := m.look(true); err == nil {
		t.Error("a request that failed is taken for one that did not")
	}
	m.fail = nil
	for _, step := range []struct {
		silent   bool
		requests int
	}{{true, 2}, {true, 2}, {false, 2}, {true, 3}, {true, 3}} {
		if _, err := m.look(step.silent); err != nil || m.requests != step.requests {
			t.Errorf("%+v: %d requests, %v", step, m.requests, err)
		}
	}
}

func TestANodeWithoutAReportIsLeftToItsOwner(t *testing.T) {
	m := newMarket(t)
	if err := m.Delete(t.Context(), &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n"}}); err != nil {
		t.Fatal(err)
	}
	if again, err := m.look(true); err != nil || again != 0 || m.requests != 0 {
		t.Errorf("looks again after %s, %v, with %d requests", again, err, m.requests)
	}
}

func TestANodeWhoseReportWentAndCameIsWithdrawnAnew(t *testing.T) {
	m := newMarket(t)
	for requests := 1; requests <= 2; requests++ {
		if _, err := m.look(true); err != nil || m.requests != requests {
			t.Errorf("%d requests, want %d, %v", m.requests, requests, err)
		}
		report := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		must(t, m.Delete(t.Context(), report))
		if _, err := m.look(true); err != nil {
			t.Error(err)
		}
		report.ResourceVersion = ""
		must(t, m.Create(t.Context(), report))
	}
}

func TestEachSilentNodeIsWithdrawnOnce(t *testing.T) {
	m := newMarket(t)
	must(t, m.Create(t.Context(), &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "m"}}))
	m.silent = true
	for range 2 {
		for _, node := range []string{"n", "m"} {
			if _, err := m.lookAt(node); err != nil {
				t.Error(err)
			}
		}
	}
	m.wantLeft("others/berth-n")
	if m.requests != 2 {
		t.Errorf("%d requests for two nodes", m.requests)
	}
}

func TestTheCapacityOfAnotherDriverIsNotWithdrawn(t *testing.T) {
	m := newMarket(t)
	theirs := published("n")
	theirs.Name, theirs.Labels = "other-n", foreign().CapacityLabels("n")
	must(t, m.Create(t.Context(), theirs))
	if _, err := m.look(true); err != nil {
		t.Error(err)
	}
	m.wantLeft("berth/berth-m", "berth/other-n", "others/berth-n")
}
