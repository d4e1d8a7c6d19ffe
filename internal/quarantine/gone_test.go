package quarantine

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
)

// ruin is a cluster in which a volume and a snapshot are on n1, of which there is no Node, and
// another volume on n2.
func ruin(t *testing.T, more ...client.Object) client.Client {
	t.Helper()
	deleted := volume(lost, "n1")
	deleted.Finalizers, deleted.DeletionTimestamp = []string{v1alpha1.VolumeFinalizer}, &metav1.Time{Time: since.Time}
	v1alpha1.SetForgottenNodes(deleted, []string{"n0"})
	picture := &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: photo, Labels: map[string]string{v1alpha1.ReplicaLabel("n1"): ""}}}
	return cluster(t, interceptor.Funcs{}, append(more, deleted, picture, volume(other, "n2"))...)
}

func TestWhatANodeOnlyReportedIsOfItToo(t *testing.T) {
	c := cluster(t, interceptor.Funcs{}, withEntries(volume(lost), v1alpha1.ReplicaStatus{Node: "n1"}), volume(other))
	if found, err := Remnants(t.Context(), c, "n1"); err != nil || len(found) != 1 || found[0].Name != lost {
		t.Errorf("%+v, %v", found, err)
	}
}

// saidOf are the words on an object.
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
		"there is such a Node": {"n1", []client.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}},
		"nothing is on it":     {"n7", nil},
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
