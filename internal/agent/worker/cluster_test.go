package worker

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
	apply "berth.dev/berth/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

// failing answers every request with an error.
func failing(t *testing.T, err error) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		},
		SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
			return err
		},
	}).Build()
}

func TestWhetherTheCacheOrTheAPIServerWasAskedItsErrorIsTold(t *testing.T) {
	errUnread := errors.New("the cache was not read yet")
	c := NewCluster[v1alpha1.Volume]("n", failing(t, errUnread), failing(t, errAway))
	_, noClass := c.Class(t.Context(), "fast")
	_, unwatched := c.Watched(t.Context(), "v")
	_, unread := c.Live(t.Context(), "v")
	for name, tc := range map[string]struct{ got, want error }{
		"a Volume read from the cache":                {unwatched, errUnread},
		"a class read from the cache":                 {noClass, errUnread},
		"a Volume read from the API server":           {unread, errAway},
		"a Volume written by the client of the cache": {c.Apply(t.Context(), apply.Volume("v")), errUnread},
	} {
		if !errors.Is(tc.got, tc.want) {
			t.Errorf("%s: %v, want %v", name, tc.got, tc.want)
		}
	}
}
