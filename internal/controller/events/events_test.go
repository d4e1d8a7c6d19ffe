package events_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/internal/controller/events"
)

func answering(t *testing.T, answer error) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := eventsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if answer != nil {
				return answer
			}
			return c.Create(ctx, o, options...)
		},
	}).Build()
}

func event() events.Event {
	return events.Event{
		Name: events.Name("berth-", "content"), About: corev1.ObjectReference{Kind: "Volume", Name: "vol-1"}, Type: corev1.EventTypeWarning,
		Reason: "Fenced", Action: "Oversee", Note: "a" + strings.Repeat("ä", events.MaxNote), At: time.Unix(1, 0), Instance: "c-1",
	}
}

func TestAnEventIsMadeOnceWithATextThatTheAPITakes(t *testing.T) {
	c := answering(t, nil)
	for range 2 {
		if err := events.Publish(t.Context(), c, event()); err != nil {
			t.Fatal(err)
		}
	}
	var made eventsv1.EventList
	if err := c.List(t.Context(), &made); err != nil || len(made.Items) != 1 {
		t.Fatalf("%d events, %v", len(made.Items), err)
	}
	if e := made.Items[0]; e.Namespace != "default" || len(e.Note) != events.MaxNote-1 || !utf8.ValidString(e.Note) || e.Regarding.Name != "vol-1" {
		t.Errorf("the event is %+v", e)
	}
}

func TestANamespaceThatEndsHasNoReaders(t *testing.T) {
	resource := schema.GroupResource{Resource: "events"}
	for name, tt := range map[string]struct {
		answer error
		fails  bool
	}{
		"a namespace that is gone": {answer: apierrors.NewNotFound(resource, "x")},
		"an event that is there":   {answer: apierrors.NewAlreadyExists(resource, "x")},
		"no right":                 {answer: apierrors.NewForbidden(resource, "x", errors.New("no")), fails: true},
		"no answer":                {answer: errors.New("connection refused"), fails: true},
	} {
		if err := events.Publish(t.Context(), answering(t, tt.answer), event()); (err != nil) != tt.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}
