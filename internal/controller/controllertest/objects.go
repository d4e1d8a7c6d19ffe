package controllertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

func create(t testing.TB, e *apitest.Environment, object client.Object) {
	t.Helper()
	if err := e.Client.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %s: %v", object.GetName(), err)
	}
	t.Cleanup(func() { destroy(t, e, object) })
}

// destroy runs after the test, whose context has ended.
func destroy(t testing.TB, e *apitest.Environment, object client.Object) {
	t.Helper()
	if err := client.IgnoreNotFound(e.Client.Delete(context.WithoutCancel(t.Context()), object)); err != nil {
		t.Errorf("removing %s: %v", object.GetName(), err)
	}
}

// patch changes the status of the object that the API server has now.
func patch(t testing.TB, e *apitest.Environment, object client.Object, change func()) {
	t.Helper()
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	change()
	if err := e.Client.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// Volume reads a Volume, or returns nil.
func Volume(t testing.TB, e *apitest.Environment, id string) *v1alpha1.Volume {
	t.Helper()
	v, err := read(t.Context(), e, id)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func read(ctx context.Context, e *apitest.Environment, id string) (*v1alpha1.Volume, error) {
	v := &v1alpha1.Volume{}
	err := e.Client.Get(ctx, client.ObjectKey{Name: id}, v)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return v, err
}

// Eventually waits until the check accepts a Volume, which is nil if there is none.
// If that does not happen it fails with the check's last error.
func Eventually(t testing.TB, e *apitest.Environment, id string, check func(*v1alpha1.Volume) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		v, err := read(ctx, e, id)
		if err != nil {
			return false, err
		}
		last = check(v)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("volume %s: %v", id, errors.Join(last, err))
	}
}

// Gone is a check that there is no Volume.
func Gone(v *v1alpha1.Volume) error {
	if v != nil {
		return fmt.Errorf("it still exists: finalizers %v, labels %v, status %+v", v.Finalizers, v.Labels, v.Status)
	}
	return nil
}
