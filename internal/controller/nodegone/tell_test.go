package nodegone

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/decide/gone/gonetest"
)

// eventsOf returns the types and namespaces of the events
// of a reason, by the kind of their object.
func (w *world) eventsOf(reason string) map[string]string {
	w.t.Helper()
	found := map[string]string{}
	for _, e := range w.events() {
		if e.Reason == reason {
			found[e.Regarding.Kind] += e.Type + " in " + e.Namespace
		}
	}
	return found
}

func TestEventsAreWhereTheirObjectsAre(t *testing.T) {
	warned := map[string]string{"Volume": "Warning in default", "PersistentVolume": "Warning in default", "PersistentVolumeClaim": "Warning in shop"}
	normal := map[string]string{"Volume": "Normal in default", "PersistentVolume": "Normal in default", "PersistentVolumeClaim": "Normal in shop"}
	unclaimed, unexported := maps.Clone(normal), maps.Clone(normal)
	delete(unclaimed, "PersistentVolumeClaim")
	delete(unexported, "PersistentVolumeClaim")
	delete(unexported, "PersistentVolume")
	for name, tc := range map[string]struct {
		meanwhile func(w *world)
		want      map[string]string
	}{
		"the PersistentVolume exists":         {func(*world) {}, normal},
		"the class keeps claims by now":       {func(w *world) { w.keep() }, normal},
		"the PersistentVolume names no claim": {replaced(func(s *corev1.PersistentVolumeSpec) { s.ClaimRef = nil }), unclaimed},
		"the PersistentVolume was deleted":    {func(w *world) { w.drop(gonetest.PersistentVolume()) }, unexported},
	} {
		t.Run(name, func(t *testing.T) {
			w := due(t)
			w.run()
			tc.meanwhile(w)
			w.put(node(gonetest.Node))
			w.run()
			for reason, want := range map[string]map[string]string{v1alpha1.ReasonReleasePending: warned, v1alpha1.ReasonClaimReleased: warned, v1alpha1.ReasonNodeReturned: tc.want} {
				if diff := cmp.Diff(want, w.eventsOf(reason)); diff != "" {
					t.Errorf("%s: %s", reason, diff)
				}
			}
		})
	}
}

func TestEachAbsenceIsToldOf(t *testing.T) {
	w := newWorld(t, shop()...)
	w.wait(0)
	w.put(node(gonetest.Node))
	w.wait(time.Minute)
	w.drop(node(gonetest.Node))
	w.wait(time.Minute)
	if told := w.ending().Told["ReleasePending Volume"]; told != 2 {
		t.Errorf("the volume's node went twice, told %d times", told)
	}
}

func TestARetryAfterALostAnswerMakesOneEvent(t *testing.T) {
	w := due(t)
	answer := w.server.After
	w.server.After = func(wr lagging.Write) error {
		if e, ok := wr.Object.(*eventsv1.Event); ok && e.Reason == v1alpha1.ReasonClaimReleased {
			w.server.After = answer
			return errAway
		}
		return answer(wr)
	}
	if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: gonetest.Node}}); !errors.Is(err, errAway) {
		t.Fatalf("error %v", err)
	}
	w.wait(time.Minute)
	if got := w.ending(); got.Mark != "True ClaimReleased" || got.Told["ClaimReleased Volume"] != 1 {
		t.Errorf("%+v", got)
	}
}

func TestAVolumeIsNotMarkedWhileItsEventFailsUnlessItsNamespaceIsGone(t *testing.T) {
	terminating := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}}}
	for name, tc := range map[string]struct {
		fails error
		mark  string
	}{
		"the API server is away":              {errAway, " "},
		"the namespace of the event is gone":  {apierrors.NewNotFound(corev1.Resource("namespaces"), "shop"), "True ReleasePending"},
		"the namespace of the event is going": {terminating, "True ReleasePending"},
		"the event is there":                  {apierrors.NewAlreadyExists(eventsv1.Resource("events"), "e"), "True ReleasePending"},
		"the controller may not make events":  {apierrors.NewForbidden(eventsv1.Resource("events"), "e", errAway), " "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shop()...)
			count := w.server.Before
			w.server.Before = func(wr lagging.Write) error {
				if e, ok := wr.Object.(*eventsv1.Event); ok && e.Namespace == "shop" {
					return tc.fails
				}
				return count(wr)
			}
			_, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: gonetest.Node}})
			if (err != nil) != (tc.mark == " ") {
				t.Errorf("error %v", err)
			}
			w.expect(tc.mark, true)
		})
	}
}
