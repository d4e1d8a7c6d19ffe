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
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/decide/gone"
	"berth.dev/berth/internal/decide/gone/gonetest"
	"berth.dev/berth/internal/driver"
)

var errKilled = errors.New("the process was killed")

// world is a cluster whose node n1 is gone, with a Reconciler that
// is killed at one of its writes. The tests beside run.go use a
// real API server; this one can stop between any two requests.
type world struct {
	client.Client // for the other clients
	server        *lagging.Server

	t     *testing.T
	clock *testingclock.FakePassiveClock
	r     *Reconciler
	// writes counts the writes so far. The process is killed before or after the write
	// of that number.
	writes, before, after int
	killed                bool
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, clock: testingclock.NewFakePassiveClock(start)}
	w.server = lagging.New(t, objects...)
	w.server.Before = func(wr lagging.Write) error {
		if wr.Verb == "delete" {
			w.mayGo(wr.Object)
		}
		return w.begin()
	}
	w.server.After = func(lagging.Write) error { return w.end() }
	w.Client = w.server.Others()
	w.restart()
	return w
}

// shop is a volume with its claim, and nodes that are there.
func shop() []client.Object {
	return []client.Object{gonetest.Volume(), gonetest.Class(v1alpha1.NodeGoneReleaseClaims), gonetest.PersistentVolume(), gonetest.Claim(), node("n2"), node("n3")}
}

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// begin counts a write of the process, and kills it before the chosen one.
func (w *world) begin() error {
	if w.killed {
		return errKilled
	}
	w.writes++
	w.killed = w.writes == w.before
	if w.killed {
		return errKilled
	}
	return nil
}

// end kills the process after the chosen write.
func (w *world) end() error {
	w.killed = w.writes == w.after
	if w.killed {
		return errKilled
	}
	return nil
}

// mayGo fails the test on any deletion but that of a claim whose data stays.
func (w *world) mayGo(o client.Object) {
	w.t.Helper()
	claim, isClaim := o.(*corev1.PersistentVolumeClaim)
	if !isClaim {
		w.t.Errorf("%T %s was deleted", o, o.GetName())
		return
	}
	pv := &corev1.PersistentVolume{}
	if err := w.Get(w.t.Context(), types.NamespacedName{Name: claim.Spec.VolumeName}, pv); err != nil || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		w.t.Errorf("a claim was deleted while its PersistentVolume has policy %q, %v", pv.Spec.PersistentVolumeReclaimPolicy, err)
	}
}

// restart begins a process that remembers nothing.
func (w *world) restart() {
	w.killed = false
	w.r = &Reconciler{Driver: driver.Local(), Client: w.server.Client(), Live: named{w.server.Live()}, Clock: w.clock, Instance: "test"}
}

// named refuses to read an object without a name, like clients of a real API server.
type named struct{ client.Reader }

func (n named) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if key.Name == "" {
		return errors.New("resource name may not be empty")
	}
	return n.Reader.Get(ctx, key, o, opts...)
}

// run reconciles at the present time, and again after each kill.
func (w *world) run() {
	w.t.Helper()
	for range 3 {
		_, err := w.r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: gonetest.Node}})
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

// pass lets time pass. It reconciles when the delay of a mark is over, and again when the
// delay of a process that has just begun is over.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	for _, step := range []time.Duration{d, gone.Settle} {
		w.clock.SetTime(w.clock.Now().Add(step))
		w.run()
	}
}

// ending is the final state.
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
		if err := w.Get(w.t.Context(), types.NamespacedName{Name: gonetest.ID}, o); err != nil {
			w.t.Fatal(err)
		}
	}
	err := w.Get(w.t.Context(), types.NamespacedName{Namespace: "shop", Name: "db-0"}, &corev1.PersistentVolumeClaim{})
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	m := gone.MarkOf(v)
	e := ending{
		Mark: fmt.Sprintf("%s %s", m.Status, m.Reason), Policy: pv.Spec.PersistentVolumeReclaimPolicy, Claim: !apierrors.IsNotFound(err),
		Volume: v.DeletionTimestamp == nil && len(v.Finalizers) == 1, Told: map[string]int{},
	}
	for _, event := range w.events() {
		e.Told[event.Reason+" "+event.Regarding.Kind]++
	}
	return e
}

func (w *world) events() []eventsv1.Event {
	w.t.Helper()
	var list eventsv1.EventList
	if err := w.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// play runs the case of a node that is gone for longer than the delay.
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
				if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: gonetest.Node}}); err != nil {
					break
				}
			}
			w.after = 0
			w.restart()
			if err := w.Create(t.Context(), node(gonetest.Node)); err != nil {
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
