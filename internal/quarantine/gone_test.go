package quarantine

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
)

// ruin is a cluster with a volume and a snapshot on n1, which has no Node, and another volume
// on n2.
func ruin(t *testing.T, more ...client.Object) client.Client {
	t.Helper()
	deleted := volume(lost, "n1")
	deleted.Finalizers, deleted.DeletionTimestamp = []string{v1alpha1.VolumeFinalizer}, &metav1.Time{Time: since.Time}
	v1alpha1.SetForgottenNodes(deleted, []string{"n0"})
	picture := &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: photo, Labels: map[string]string{v1alpha1.ReplicaLabel("n1"): ""}}}
	return cluster(t, interceptor.Funcs{}, append(more, deleted, picture, volume(other, "n2"))...)
}

func TestRemnantsIncludeVolumesThatTheNodeOnlyReported(t *testing.T) {
	c := cluster(t, interceptor.Funcs{}, withEntries(volume(lost), v1alpha1.ReplicaStatus{Node: "n1"}), volume(other))
	if found, err := Remnants(t.Context(), c, "n1"); err != nil || len(found) != 1 || found[0].Name != lost {
		t.Errorf("%+v, %v", found, err)
	}
}

// saidOf returns the forgotten nodes of an object.
func saidOf(t *testing.T, c client.Client, o client.Object, name string) []string {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, o); err != nil {
		t.Fatal(err)
	}
	return v1alpha1.ForgottenNodes(o)
}

func TestThatANodeIsGoneIsWrittenOnEverythingThatItHas(t *testing.T) {
	c := ruin(t)
	for range 2 { // saying it again changes nothing
		found, err := ForgetNode(t.Context(), c, "n1")
		if err != nil || len(found) != 2 || found[0].Name != lost || !found[0].Deleting || found[1].Name != photo || found[1].Deleting {
			t.Fatalf("%+v, %v", found, err)
		}
		if got := saidOf(t, c, &v1alpha1.Volume{}, lost); !slices.Equal(got, []string{"n0", "n1"}) {
			t.Errorf("the volume says %v", got)
		}
		if got := saidOf(t, c, &v1alpha1.Snapshot{}, photo); !slices.Equal(got, []string{"n1"}) {
			t.Errorf("the snapshot says %v", got)
		}
	}
	if got := saidOf(t, c, &v1alpha1.Volume{}, other); got != nil {
		t.Errorf("the volume of another node says %v", got)
	}
	if _, err := RememberNode(t.Context(), c, "n1"); err != nil {
		t.Fatal(err)
	}
	if got := saidOf(t, c, &v1alpha1.Volume{}, lost); !slices.Equal(got, []string{"n0"}) {
		t.Errorf("once the word was taken back the volume says %v", got)
	}
	if got := saidOf(t, c, &v1alpha1.Snapshot{}, photo); got != nil {
		t.Errorf("once the word was taken back the snapshot says %v", got)
	}
}

func TestANodeIsNotForgottenThatIsThereOrHasNothing(t *testing.T) {
	for name, test := range map[string]struct {
		node string
		more []client.Object
	}{
		"the Node exists":                {"n1", []client.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}},
		"no object has data on the node": {"n7", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := ruin(t, test.more...)
			if _, err := ForgetNode(t.Context(), c, test.node); !errors.Is(err, ErrRefused) {
				t.Errorf("error %v, want a refusal", err)
			}
			if got := saidOf(t, c, &v1alpha1.Volume{}, lost); !slices.Equal(got, []string{"n0"}) {
				t.Errorf("the volume says %v", got)
			}
		})
	}
}

// quiet fails the test if anything is updated.
func quiet(t *testing.T) interceptor.Funcs {
	return interceptor.Funcs{Update: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.UpdateOption) error {
		t.Errorf("%T %s is written, although nothing of it changes", o, o.GetName())
		return nil
	}}
}

func TestForgettingOrRememberingAgainWritesNothing(t *testing.T) {
	told := volume(lost, "n1")
	v1alpha1.SetForgottenNodes(told, []string{"n1"})
	if _, err := ForgetNode(t.Context(), cluster(t, quiet(t), told), "n1"); err != nil {
		t.Error(err)
	}
	if _, err := RememberNode(t.Context(), cluster(t, quiet(t), volume(lost, "n1")), "n1"); err != nil {
		t.Error(err)
	}
	if was, err := Remember(t.Context(), cluster(t, quiet(t), node(orphaned(lost))), "n1", lost); err != nil || was {
		t.Errorf("%v, %v", was, err)
	}
}

func TestForgettingANodeKeepsAConcurrentChangeOfTheObject(t *testing.T) {
	others := 0
	c := cluster(t, interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		if others++; others == 1 { // another node is said to be gone at the same time
			v := volume(lost, "n1")
			v.ResourceVersion = o.GetResourceVersion()
			v1alpha1.SetForgottenNodes(v, []string{"n0"})
			if err := c.Update(ctx, v); err != nil {
				return err
			}
		}
		return c.Update(ctx, o, opts...)
	}}, volume(lost, "n1"))
	if _, err := ForgetNode(t.Context(), c, "n1"); err != nil {
		t.Fatal(err)
	}
	if got := saidOf(t, c, &v1alpha1.Volume{}, lost); !slices.Equal(got, []string{"n0", "n1"}) {
		t.Errorf("the volume says %v", got)
	}
}
