package nodegone

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
)

var errKilled = errors.New("the process was killed")

// world is a cluster whose node n1 is gone, with a Reconciler that is killed at one of its
// writes. The API server of the tests beside run.go is a real one; this one can stop
// between any two requests.
type world struct {
	client.Client
	t     *testing.T
	clock *testingclock.FakePassiveClock
	r     *Reconciler
	// writes so far; killed before the write of that number is done, or after it.
	writes, before, after int
	killed                bool
	// theirs is set while others delete something.
	theirs bool
	// meanwhile, if set, happens just before a deletion comes to the API server.
	meanwhile func()
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, clock: testingclock.NewFakePassiveClock(start)}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Volume{}).WithInterceptorFuncs(w.funcs()).Build()
	w.restart()
	return w
}

// shop is a volume with its claim, and nodes that are there.
func shop() []client.Object {
	return []client.Object{volume(), class(v1alpha1.NodeGoneReleaseClaims), persistentVolume(), claim(), node("n2"), node("n3")}
}

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// write counts a write and kills the process at the chosen one.
func (w *world) write(do func() error) error {
	if w.killed {
		return errKilled
	}
	w.writes++
	if w.writes == w.before {
		w.killed = true
		return errKilled
	}
	err := do()
	if w.writes == w.after {
		w.killed = true
		return errKilled
	}
	return err
}

func (w *world) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return w.write(func() error { return c.Create(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return w.write(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return w.write(func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if w.theirs {
				return c.Delete(ctx, o, opts...)
			}
			return w.write(func() error {
				w.mayGo(ctx, c, o)
				if w.meanwhile != nil {
					w.meanwhile()
				}
				if err := sameUID(ctx, c, o, opts); err != nil {
					return err
				}
				return c.Delete(ctx, o, opts...)
			})
		},
	}
}

// sameUID is what the fake client leaves out: a deletion's precondition on the UID.
func sameUID(ctx context.Context, c client.Reader, o client.Object, opts []client.DeleteOption) error {
	asked := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions
	if asked == nil || asked.UID == nil {
		return nil
	}
	there := &corev1.PersistentVolumeClaim{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), there); err != nil || there.UID == *asked.UID {
		return err
	}
	return apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), o.GetName(), errors.New("another UID"))
}

// mayGo fails the test if something else than a claim is deleted, or a claim whose data
// would go with it.
func (w *world) mayGo(ctx context.Context, c client.Reader, o client.Object) {
	w.t.Helper()
	claim, isClaim := o.(*corev1.PersistentVolumeClaim)
	if !isClaim {
		w.t.Errorf("%T %s was deleted", o, o.GetName())
		return
	}
	pv := &corev1.PersistentVolume{}
	if err := c.Get(ctx, types.NamespacedName{Name: claim.Spec.VolumeName}, pv); err != nil || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		w.t.Errorf("a claim was deleted while its PersistentVolume has policy %q, %v", pv.Spec.PersistentVolumeReclaimPolicy, err)
	}
}

// restart begins a process that remembers nothing.
func (w *world) restart() {
	w.killed = false
	w.r = &Reconciler{Client: w.Client, Live: w.Client, Clock: w.clock, Instance: "test"}
}

// run reconciles at the present time, and again after each kill.
func (w *world) run() {
	w.t.Helper()
	for range 3 {
		_, err := w.r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: gone}})
		if err == nil {
			return
		}
		if !w.killed {
			w.t.Fatal(err)
		}
		w.restart()
	}
	w.t.Fatal("it does not end")
}

// pass lets time pass, and reconciles when the delay of a mark and that of a process that has
// just begun are over.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	for _, step := range []time.Duration{d, settle} {
		w.clock.SetTime(w.clock.Now().Add(step))
		w.run()
	}
}

// ending is what is there in the end.
type ending struct {
	Mark   string
	Policy corev1.PersistentVolumeReclaimPolicy
	Claim  bool
	Volume bool
	Told   map[string]int
}

func (w *world) ending() ending {
	w.t.Helper()
	v, pv := &v1alpha1.Volume{}, &corev1.PersistentVolume{}
	for _, o := range []client.Object{v, pv} {
		if err := w.Get(w.t.Context(), types.NamespacedName{Name: id}, o); err != nil {
			w.t.Fatal(err)
		}
	}
	err := w.Get(w.t.Context(), types.NamespacedName{Namespace: "shop", Name: "db-0"}, &corev1.PersistentVolumeClaim{})
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	m := mark(v)
	e := ending{
		Mark: fmt.Sprintf("%s %s", m.Status, m.Reason), Policy: pv.Spec.PersistentVolumeReclaimPolicy, Claim: !apierrors.IsNotFound(err),
		Volume: v.DeletionTimestamp == nil && len(v.Finalizers) == 1, Told: map[string]int{},
	}
	var list eventsv1.EventList
	if err := w.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	for _, event := range list.Items {
		e.Told[event.Reason+" "+event.Regarding.Kind]++
	}
	return e
}

// play is a node that is gone for longer than the delay.
func play(t *testing.T, before, after int) (ending, int) {
	t.Helper()
	w := newWorld(t, shop()...)
	w.before, w.after = before, after
	w.run()
	w.pass(hour)
	return w.ending(), w.writes
}

func TestAKillAtAnyWriteEndsInTheSameState(t *testing.T) {
	want, writes := play(t, 0, 0)
	if diff := cmp.Diff(ending{
		Mark: "True ClaimReleased", Policy: corev1.PersistentVolumeReclaimRetain, Volume: true,
		Told: map[string]int{
			"ReleasePending Volume": 1, "ReleasePending PersistentVolume": 1, "ReleasePending PersistentVolumeClaim": 1,
			"ClaimReleased Volume": 1, "ClaimReleased PersistentVolume": 1, "ClaimReleased PersistentVolumeClaim": 1,
		},
	}, want); diff != "" {
		t.Fatal(diff)
	}
	for k := 1; k <= writes; k++ {
		for _, at := range []struct {
			name          string
			before, after int
		}{{"before", k, 0}, {"after", 0, k}} {
			t.Run(fmt.Sprintf("%s write %d", at.name, k), func(t *testing.T) {
				got, _ := play(t, at.before, at.after)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestANodeThatReturnsAtAnyWriteHasItsDataAndItsClaimOrItsPersistentVolume(t *testing.T) {
	_, writes := play(t, 0, 0)
	for k := 1; k <= writes; k++ {
		t.Run(fmt.Sprintf("after write %d", k), func(t *testing.T) {
			w := newWorld(t, shop()...)
			w.after = k
			for _, wait := range []time.Duration{0, hour} {
				w.clock.SetTime(w.clock.Now().Add(wait))
				if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: gone}}); err != nil {
					break
				}
			}
			w.after = 0
			w.restart()
			if err := w.Create(t.Context(), node(gone)); err != nil {
				t.Fatal(err)
			}
			w.run()
			w.pass(10 * hour)
			got := w.ending()
			if !got.Volume || !got.Claim && got.Policy != corev1.PersistentVolumeReclaimRetain {
				t.Errorf("%+v", got)
			}
			if got.Mark != "False NodeReturned" && got.Mark != " " {
				t.Errorf("the volume says %s", got.Mark)
			}
			if told := got.Told["ClaimReleased PersistentVolume"]; (told == 1) == got.Claim {
				t.Errorf("the claim is there: %v; that it was released was told %d times", got.Claim, told)
			}
		})
	}
}
