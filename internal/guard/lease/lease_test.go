package lease

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/ownership"
)

// cluster has the Node n1 and the named storage nodes.
type cluster struct {
	t      *testing.T
	client client.WithWatch
	now    time.Time
	lists  int
	fails  error
	lost   bool
	read   bool // the lease was
	// broken are the errors of reading the lease, the Node and the storage nodes.
	broken struct{ lease, node, list error }
}

func newCluster(t *testing.T, storage ...string) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "node"}}}
	for _, name := range storage {
		objects = append(objects, &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	c := &cluster{t: t, now: time.Unix(1_000_000, 0)}
	c.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			c.lists++
			if c.broken.list != nil {
				return c.broken.list
			}
			return w.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, lease := o.(*coordinationv1.Lease); lease {
				c.read = true
				if c.broken.lease != nil {
					return c.broken.lease
				}
			} else if c.broken.node != nil {
				return c.broken.node
			}
			return w.Get(ctx, key, o, opts...)
		},
		Update: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if c.fails != nil && !c.lost {
				return c.fails
			}
			return errors.Join(w.Update(ctx, o, opts...), c.fails)
		},
	}).Build()
	return c
}

func (c *cluster) lease() *Lease {
	return &Lease{Client: c.client, Node: "n1", Namespace: "ns", Boot: "boot", Now: func() time.Time { return c.now }}
}

// says is a guard that sends the renewal.
func says(r guard.Renewal) func([]string) (guard.Renewal, error) {
	return func([]string) (guard.Renewal, error) { return r, nil }
}

// names is a guard that writes down which nodes a renewal names.
func names(into *[]string) func([]string) (guard.Renewal, error) {
	return func(members []string) (guard.Renewal, error) {
		*into = slices.Clone(members)
		return guard.Renewal{}, nil
	}
}

func (c *cluster) get() *coordinationv1.Lease {
	c.t.Helper()
	o := &coordinationv1.Lease{}
	if err := c.client.Get(c.t.Context(), client.ObjectKey{Namespace: "ns", Name: "berth-guard-n1"}, o); err != nil {
		c.t.Fatal(err)
	}
	return o
}

func TestALeaseNamesTheBootTheMembersTheSilenceAndTheWatchdog(t *testing.T) {
	c := newCluster(t, "n1", "n2", "n3")
	l := c.lease()
	for _, watchdog := range []string{"false", "true"} {
		c.now = c.now.Add(5 * time.Second)
		if err := l.Renew(t.Context(), says(guard.Renewal{Sent: time.Hour, Silent: 7 * time.Second, Watchdog: watchdog == "true"})); err != nil {
			t.Fatal(err)
		}
		o := c.get()
		if o.Annotations[v1alpha1.BootAnnotation] != "boot" || o.Annotations[v1alpha1.WatchdogAnnotation] != watchdog ||
			o.Annotations[v1alpha1.SentAnnotation] != "1h0m0s" || o.Annotations[v1alpha1.SilentAnnotation] != "7s" ||
			o.Annotations[v1alpha1.MembersAnnotation] != string(ownership.MembersOf("n1", []string{"n2", "n3"})) {
			t.Errorf("annotations %v", o.Annotations)
		}
		if !o.Spec.RenewTime.Time.Equal(c.now) || *o.Spec.HolderIdentity != "n1" || *o.Spec.LeaseDurationSeconds != 20 || o.OwnerReferences[0].UID != "node" {
			t.Errorf("%+v, owned by %v", o.Spec, o.OwnerReferences)
		}
	}
	if _, announced := c.get().Annotations[v1alpha1.AddressAnnotation]; announced {
		t.Error("a guard that answers no questions announces an address")
	}
	l.Address = "10.0.0.1:9812"
	if err := l.Renew(t.Context(), says(guard.Renewal{})); err != nil || c.get().Annotations[v1alpha1.AddressAnnotation] != l.Address {
		t.Errorf("it announces %v, %v", c.get().Annotations, err)
	}
	if c.lists != 1 {
		t.Errorf("the storage nodes were listed %d times in ten seconds", c.lists)
	}
}

func TestANodeCountsItselfAndSeesNodesComeAndGo(t *testing.T) {
	c := newCluster(t)
	l := c.lease()
	var nodes []string
	if err := l.Renew(t.Context(), names(&nodes)); err != nil || !slices.Equal(nodes, []string{"n1"}) {
		t.Fatalf("it names %q, %v", nodes, err)
	}
	for _, o := range []client.Object{&v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}} {
		if err := c.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}); err != nil {
		t.Fatal(err)
	}
	c.now = c.now.Add(surveyed)
	if err := l.Renew(t.Context(), names(&nodes)); err != nil || !slices.Equal(nodes, []string{"n1", "n2"}) {
		t.Errorf("it names %q, %v", nodes, err)
	}
	if owners := c.get().OwnerReferences; len(owners) != 0 {
		t.Errorf("the lease goes with a Node that is gone: %v", owners)
	}
}

func TestNothingIsSentOfWhichTheServerDoesNotTell(t *testing.T) {
	away := errors.New("the server is away")
	for name, breaks := range map[string]func(c *cluster){
		"the lease":         func(c *cluster) { c.broken.lease = away },
		"the own Node":      func(c *cluster) { c.broken.node = away },
		"the storage nodes": func(c *cluster) { c.broken.list = away },
	} {
		c := newCluster(t, "n1", "n2")
		breaks(c)
		l := c.lease()
		if err := l.Renew(t.Context(), says(guard.Renewal{})); !errors.Is(err, away) {
			t.Errorf("%s: %v", name, err)
		}
		c.broken.lease, c.broken.node, c.broken.list = nil, nil, nil
		if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "berth-guard-n1"}, &coordinationv1.Lease{}); err == nil {
			t.Errorf("%s: a lease is there", name)
		}
		if err := l.Renew(t.Context(), says(guard.Renewal{})); err != nil || c.get().OwnerReferences[0].UID != "node" {
			t.Errorf("%s, once the server is back: %v", name, err)
		}
	}
}

func TestANodeIsNamedOnceWhereverItStandsInTheList(t *testing.T) {
	c := newCluster(t, "n1", "n2")
	l := c.lease()
	l.Node = "n2"
	var nodes []string
	if err := l.Renew(t.Context(), names(&nodes)); err != nil || !slices.Equal(nodes, []string{"n1", "n2"}) {
		t.Errorf("it names %q, %v", nodes, err)
	}
	c.now = c.now.Add(-time.Hour) // the machine's clock was set
	if err := l.Renew(t.Context(), names(&nodes)); err != nil || c.lists != 2 {
		t.Errorf("the storage nodes were listed %d times, %v", c.lists, err)
	}
}

func TestARenewalThatFailedIsNoneAndTheNextOneReadsFirst(t *testing.T) {
	for name, lost := range map[string]bool{"refused": false, "the answer was lost": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "n1")
			l := c.lease()
			if err := l.Renew(t.Context(), says(guard.Renewal{})); err != nil {
				t.Fatal(err)
			}
			c.fails, c.lost = errors.New("time is up"), lost
			if err := l.Renew(t.Context(), says(guard.Renewal{Watchdog: true})); !errors.Is(err, c.fails) {
				t.Error(err)
			}
			c.fails = nil
			if err := l.Renew(t.Context(), says(guard.Renewal{})); err != nil || c.get().Annotations[v1alpha1.WatchdogAnnotation] != "false" {
				t.Errorf("%v, %v", err, c.get().Annotations)
			}
		})
	}
}

func TestARenewalThatArrivesLateChangesNothing(t *testing.T) {
	c := newCluster(t, "n1")
	first, second := c.lease(), c.lease()
	for _, l := range []*Lease{first, second} {
		if err := l.Renew(t.Context(), says(guard.Renewal{})); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Renew(t.Context(), says(guard.Renewal{Watchdog: true})); err == nil || c.get().Annotations[v1alpha1.WatchdogAnnotation] != "false" {
		t.Errorf("it was taken: %v, %v", err, c.get().Annotations)
	}
}

func TestARenewalIsSentAfterTheVersionThatItReplacesIsKnown(t *testing.T) {
	c := newCluster(t, "n1")
	asked := 0
	err := c.lease().Renew(t.Context(), func([]string) (guard.Renewal, error) {
		asked++
		if !c.read {
			t.Error("the time of a renewal is from before the lease was read")
		}
		return guard.Renewal{}, nil
	})
	if err != nil || asked != 1 {
		t.Errorf("asked %d times, %v", asked, err)
	}
}

func TestNothingIsSentThatTheGuardCannotKeep(t *testing.T) {
	c := newCluster(t, "n1")
	full := errors.New("the disk is full")
	if err := c.lease().Renew(t.Context(), func([]string) (guard.Renewal, error) { return guard.Renewal{}, full }); !errors.Is(err, full) {
		t.Error(err)
	}
	o := &coordinationv1.Lease{}
	if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "berth-guard-n1"}, o); err == nil {
		t.Error("a lease is there")
	}
}
