package agent

import (
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

// classes are a PoolClass over the site's pool and a StorageClass of it.
func (s *site) classes() (*v1alpha1.PoolClass, *storagev1.StorageClass) {
	pc := &v1alpha1.PoolClass{
		ObjectMeta: metav1.ObjectMeta{Name: "pc-" + s.name},
		Spec: v1alpha1.PoolClassSpec{
			Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: []string{s.pool.Name}},
			InlineVolumes: &v1alpha1.InlineVolumes{Namespaces: []string{v1alpha1.EveryNamespace}},
		},
	}
	sc := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "sc-" + s.name}, Provisioner: v1alpha1.LocalDriverName,
		Parameters: map[string]string{"poolClass": pc.Name},
	}
	return pc, sc
}

// volume is a Volume as the controller makes one.
func (s *site) volume(name string, change ...func(*v1alpha1.Volume)) *v1alpha1.Volume {
	v := &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{
			Name: v1alpha1.VolumeName(s.name + name), Finalizers: []string{v1alpha1.VolumeFinalizer},
			Labels: map[string]string{v1alpha1.ReplicaLabel(s.name): ""},
		},
		Spec: v1alpha1.VolumeSpec{
			Capacity: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4,
			PoolClass: "pc-" + s.name, Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementNode,
			Replication: v1alpha1.Replication{Factor: 1},
			Replicas:    []v1alpha1.ReplicaSpec{{Node: s.name, Pool: s.pool.Name}},
		},
	}
	for _, c := range change {
		c(v)
	}
	return v
}

// get reads a Volume; nil if it is gone.
func (s *site) get(name string) *v1alpha1.Volume {
	s.t.Helper()
	v := &v1alpha1.Volume{}
	err := s.Client.Get(s.t.Context(), client.ObjectKey{Name: v1alpha1.VolumeName(s.name + name)}, v)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// entry is the node's entry of a Volume; nil if there is none, or the Volume is gone.
func (s *site) entry(name string) *v1alpha1.ReplicaStatus {
	s.t.Helper()
	if v := s.get(name); v != nil {
		return v.Entry(s.name)
	}
	return nil
}

// says tells whether the node's entry has a state and a reason.
func (s *site) says(name string, state v1alpha1.ReplicaState, reason string) func() bool {
	return func() bool {
		e := s.entry(name)
		return e != nil && e.State == state && e.Reason == reason
	}
}

// edit changes a Volume as the controller does.
func (s *site) edit(name string, change func(*v1alpha1.Volume)) {
	s.t.Helper()
	for {
		v := s.get(name)
		change(v)
		err := s.Client.Update(s.t.Context(), v)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			s.t.Fatal(err)
		}
	}
}

// finish plays the controller's part in a deletion, whether the data is gone or not.
func (s *site) finish(name string) {
	s.t.Helper()
	if s.get(name) != nil {
		s.edit(name, func(v *v1alpha1.Volume) { controllerutil.RemoveFinalizer(v, v1alpha1.VolumeFinalizer) })
	}
}

// has says whether the node has a volume's data.
func (s *site) has(name string) bool {
	_, ok := s.disks.Device("/dev/" + s.pool.Name + "/" + v1alpha1.VolumeName(s.name+name))
	return ok
}

// capacity returns the capacity that the node publishes for the site's StorageClass; empty if none.
func (s *site) capacity() string {
	s.t.Helper()
	var list storagev1.CSIStorageCapacityList
	if err := s.Client.List(s.t.Context(), &list, client.InNamespace(apitest.Namespace)); err != nil {
		s.t.Fatal(err)
	}
	for _, c := range list.Items {
		if c.StorageClassName == "sc-"+s.name && c.NodeTopology.MatchLabels[v1alpha1.TopologyKey] == s.name {
			return c.Capacity.String()
		}
	}
	return ""
}

// storageNode reads the node's StorageNode; nil if there is none.
func (s *site) storageNode() *v1alpha1.StorageNode {
	s.t.Helper()
	n := &v1alpha1.StorageNode{}
	err := s.Client.Get(s.t.Context(), client.ObjectKey{Name: s.name}, n)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}
