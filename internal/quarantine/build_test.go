package quarantine

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
)

const (
	lost  = "pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f"
	other = "pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e10"
	photo = "snap-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f"
)

var since = metav1.Unix(1000, 0)

// orphaned is data of 1 GiB with ext4 that has no object since 1000.
func orphaned(name string, changes ...func(*v1alpha1.Orphan)) v1alpha1.InventoryItem {
	i := v1alpha1.InventoryItem{Volume: name, Allocated: resource.MustParse("1Gi")}
	if v1alpha1.IsSnapshotName(name) {
		i.Volume, i.Snapshot = "", name
	}
	i.Orphan = &v1alpha1.Orphan{
		Since: since, Reason: v1alpha1.OrphanNoObject, Message: "no object", Size: resource.MustParse("1Gi"), Filesystem: "ext4",
	}
	for _, c := range changes {
		c(i.Orphan)
	}
	return i
}

// node is n1 with items in its pool vg0, which serves the class fast.
func node(items ...v1alpha1.InventoryItem) *v1alpha1.StorageNode {
	n := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n.Status.Features = v1alpha1.AllFeatures()
	n.Status.Pools = []v1alpha1.Pool{{Name: "vg0", Classes: []string{"fast"}, Inventory: items}}
	return n
}

// forgetting adds orphans of the node to spec.forget, as they are reported.
func forgetting(n *v1alpha1.StorageNode, names ...string) *v1alpha1.StorageNode {
	for _, name := range names {
		n.Spec.Forget = append(n.Spec.Forget, v1alpha1.ForgottenOrphan{Pool: "vg0", Name: name, Size: resource.MustParse("1Gi"), Since: since, At: metav1.Unix(1500, 0)})
	}
	return n
}

// volume is a Volume that is wanted in vg0 of some nodes.
func volume(name string, nodes ...string) *v1alpha1.Volume {
	v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	v.Spec.Capacity, v.Spec.PoolClass = resource.MustParse("1Gi"), "fast"
	for _, n := range nodes {
		v.Spec.Replicas = append(v.Spec.Replicas, v1alpha1.ReplicaSpec{Node: n, Pool: "vg0"})
	}
	return v
}

// exported is the PersistentVolume of a volume for the claim shop/db.
func exported(name string, changes ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.LocalDriverName, VolumeHandle: name}
	pv.Spec.StorageClassName = "slow"
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "db", UID: "0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f"}
	for _, c := range changes {
		c(pv)
	}
	return pv
}

func storageClass(name, poolClass string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: v1alpha1.LocalDriverName,
		Parameters: map[string]string{"poolClass": poolClass}}
}

// cluster is an API server with some objects.
func cluster(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.StorageNode{}).
		WithInterceptorFuncs(funcs).Build()
}
