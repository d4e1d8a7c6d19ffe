package quarantine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
)

// reportsOnceFree has node n1 report the data only once the Volume of its name is gone: as long as
// it is there, the data is a conflict, and no orphan.
func reportsOnceFree(reported *v1alpha1.StorageNode) interceptor.Funcs {
	return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if err := c.Get(ctx, key, o, opts...); err != nil {
			return err
		}
		n, is := o.(*v1alpha1.StorageNode)
		if is && c.Get(ctx, client.ObjectKey{Name: lost}, &v1alpha1.Volume{}) != nil {
			n.Status = reported.Status
		}
		return nil
	}}
}

func conflicting() *v1alpha1.Volume {
	return withEntries(volume(lost, "n1"), v1alpha1.ReplicaStatus{Node: "n1", State: v1alpha1.ReplicaFailed, Reason: v1alpha1.ReasonConflict})
}

func ofTwoClasses(n *v1alpha1.StorageNode) *v1alpha1.StorageNode {
	n.Status.Pools[0].Classes = []string{"fast", "slow"}
	return n
}

func promisesBlock(pv *corev1.PersistentVolume) {
	pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
}

func TestAVolumeStaysIfTheDataCannotTakeItsPlace(t *testing.T) {
	twice := node(orphaned(lost))
	twice.Status.Pools = append(twice.Status.Pools, v1alpha1.Pool{Name: "vg1", Classes: []string{"fast"}, Inventory: twice.Status.Pools[0].Inventory})
	named := exported(other)
	named.Name = lost
	for name, tc := range map[string]struct {
		objects []client.Object
		because string
	}{
		"the node does not report":                                 {nil, "does not report"},
		"the data is to be deleted":                                {[]client.Object{forgetting(node(), lost)}, "is to be deleted"},
		"the data is to be deleted, and is reported":               {[]client.Object{forgetting(node(orphaned(lost)), lost)}, "is to be deleted"},
		"the data is in two pools":                                 {[]client.Object{twice}, "only its bytes can tell"},
		"the PersistentVolume promises a block device":             {[]client.Object{node(orphaned(lost)), exported(lost, promisesBlock)}, "promises a block device"},
		"the PersistentVolume of another volume has the name":      {[]client.Object{node(orphaned(lost)), named}, "is of another volume"},
		"the PersistentVolume of another volume has the name, too": {[]client.Object{node(), named}, "is of another volume"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cluster(t, interceptor.Funcs{}, append(tc.objects, conflicting())...)
				_, err := Adopt(t.Context(), c, Adoption{Node: "n1", Name: lost})
				if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tc.because) || strings.Contains(err.Error(), "was deleted before") {
					t.Errorf("error %v", err)
				}
				if v := (&v1alpha1.Volume{}); c.Get(t.Context(), client.ObjectKey{Name: lost}, v) != nil || v.UID != "older" {
					t.Errorf("the volume is %+v", v)
				}
			})
		})
	}
}

func TestTheDataGetsThePoolClassOfTheVolumeThatMadeWayWhereItsPoolServesSeveral(t *testing.T) {
	for name, tc := range map[string]struct {
		reported *v1alpha1.StorageNode
		asked    string
		want     string
	}{
		"the pool serves two classes":              {ofTwoClasses(node(orphaned(lost))), "", "slow"},
		"the pool serves one class":                {node(orphaned(lost)), "", "fast"},
		"the administrator names one of the two":   {ofTwoClasses(node(orphaned(lost))), "fast", "fast"},
		"the administrator names a class, not one": {node(orphaned(lost)), "hdd", "hdd"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := conflicting()
				v.Spec.PoolClass = "slow"
				c := cluster(t, reportsOnceFree(tc.reported), node(), v)
				done, err := Adopt(t.Context(), c, Adoption{Node: "n1", Name: lost, PoolClass: tc.asked})
				if err != nil || !done.NewVolume || done.Volume.Spec.PoolClass != tc.want {
					t.Errorf("%+v, %v; want a Volume of class %s", done, err, tc.want)
				}
			})
		})
	}
}

// Only the data itself tells which filesystem it has, and the node reports it late.
func TestARefusalThatTheDataAloneExplainsSaysThatAVolumeMadeWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reported := node(orphaned(lost))
		c := cluster(t, reportsOnceFree(reported), node(), exported(lost, promisesBlock), conflicting())
		for _, said := range []bool{true, false} { // the second time there is no Volume to delete
			_, err := Adopt(t.Context(), c, Adoption{Node: "n1", Name: lost})
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "promises a block device") || strings.Contains(err.Error(), "was deleted before") != said {
				t.Errorf("error %v", err)
			}
		}
		reported.Status.Pools[0].Inventory[0].Orphan.Filesystem = ""
		if done, err := Adopt(t.Context(), c, Adoption{Node: "n1", Name: lost, PoolClass: "fast"}); err != nil || !done.NewVolume {
			t.Errorf("after the reason is gone: %+v, %v", done, err)
		}
	})
}
