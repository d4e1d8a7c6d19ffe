package quarantine

import (
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
)

const anotherDriver = "another.example.org"

// theirs is a Volume or a Snapshot of another driver.
func theirs(name string, change ...func(*v1alpha1.Volume)) client.Object {
	if v1alpha1.IsSnapshotName(name) {
		s := &v1alpha1.Snapshot{Spec: v1alpha1.SnapshotSpec{Driver: anotherDriver}}
		s.Name = name
		return s
	}
	v := volume(name, "n1")
	v.Spec.Driver = anotherDriver
	for _, c := range change {
		c(v)
	}
	return v
}

// A "not found" would say that the data belongs to no object.
func TestDataOfAnObjectOfAnotherDriverIsNeitherForgottenNorAdopted(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		act     func(client.Client) error
	}{
		"a volume to forget": {[]client.Object{node(orphaned(lost)), theirs(lost)}, func(c client.Client) error {
			_, err := Forget(t.Context(), c, "n1", lost, since.Time)
			return err
		}},
		"a snapshot to forget": {[]client.Object{node(orphaned(photo)), theirs(photo)}, func(c client.Client) error {
			_, err := Forget(t.Context(), c, "n1", photo, since.Time)
			return err
		}},
		"a volume that waits for its pool": {[]client.Object{node(), theirs(lost)}, func(c client.Client) error {
			_, err := Lookup(t.Context(), c, "n1", lost)
			return err
		}},
		"a volume to adopt": {[]client.Object{node(orphaned(lost)), theirs(lost)}, func(c client.Client) error {
			_, err := Adopt(t.Context(), c, Adoption{Node: "n1", Name: lost})
			return err
		}},
		"a snapshot to adopt": {[]client.Object{node(orphaned(photo, from(lost))), theirs(photo)}, func(c client.Client) error {
			_, _, err := AdoptSnapshot(t.Context(), c, SnapshotAdoption{Node: "n1", Name: photo})
			return err
		}},
		"a snapshot to adopt whose volume is theirs": {[]client.Object{node(orphaned(photo, from(lost))), theirs(lost)}, func(c client.Client) error {
			_, _, err := AdoptSnapshot(t.Context(), c, SnapshotAdoption{Node: "n1", Name: photo, PoolClass: "fast"})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, interceptor.Funcs{}, tc.objects...)
			if err := tc.act(c); !errors.Is(err, ErrRefused) || !errors.Is(err, driver.ErrForeign) {
				t.Errorf("got %v, want that it is refused as another driver's", err)
			}
			n := &v1alpha1.StorageNode{}
			if err := c.Get(t.Context(), client.ObjectKey{Name: "n1"}, n); err != nil || len(n.Spec.Forget) != 0 {
				t.Errorf("to be forgotten: %+v, %v", n.Spec.Forget, err)
			}
		})
	}
}

func TestAnOrderAboutAnObjectOfAnotherDriverIsLeftAsItIs(t *testing.T) {
	c := cluster(t, interceptor.Funcs{}, forgetting(node(orphaned(other)), lost), theirs(lost))
	if _, err := Forget(t.Context(), c, "n1", other, since.Time); err != nil {
		t.Fatal(err)
	}
	n := &v1alpha1.StorageNode{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "n1"}, n); err != nil || len(n.Spec.Forget) != 2 {
		t.Errorf("to be forgotten: %+v, %v", n.Spec.Forget, err)
	}
}

// A node that is gone is gone for all drivers.
func TestTheObjectsOfAllDriversAreNamedOfANodeThatIsGone(t *testing.T) {
	c := cluster(t, interceptor.Funcs{}, theirs(lost), volume(other, "n1"))
	found, err := ForgetNode(t.Context(), c, "n1")
	if err != nil || len(found) != 2 {
		t.Errorf("found %+v, %v", found, err)
	}
	all, err := List(t.Context(), cluster(t, interceptor.Funcs{}, theirs(lost, func(v *v1alpha1.Volume) {
		v.Status.Replicas = []v1alpha1.ReplicaStatus{{Node: "n1", Pool: "vg0", State: v1alpha1.ReplicaReady}}
	})))
	if err != nil || len(all) != 1 || all[0].Reason != ReasonNodeGone {
		t.Errorf("listed %+v, %v", all, err)
	}
}
