package main

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

const (
	gi = int64(1) << 30
	// namespace of the pods, and of Berth.
	namespace, berthNamespace = "bench", "berth-system"
	// class is the PoolClass and the StorageClass, pool each node's only one.
	class, pool = "bench", "vg0"
	// room of each node's pool; every volume takes volumeBytes of it.
	room, volumeBytes = 16 * gi, gi
	// images on each node. A kubelet reports up to fifty.
	images = 10
)

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }

// node is as large as one that a kubelet reports with few images.
func node(i int) *corev1.Node {
	name := nodeName(i)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name,
		Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3), corev1.LabelTopologyRegion: "region-1",
			corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", corev1.LabelInstanceTypeStable: "standard-32",
			v1alpha1.TopologyKey: name,
		},
		Annotations: map[string]string{capacityAnnotation: fmt.Sprint(room), "volumes.kubernetes.io/controller-managed-attach-detach": "true"},
	}}
	n.Status.Capacity = corev1.ResourceList{
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
	n.Status.Allocatable = n.Status.Capacity
	now := metav1.Now()
	for _, t := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		status := corev1.ConditionFalse
		if t == corev1.NodeReady {
			status = corev1.ConditionTrue
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: t, Status: status, LastHeartbeatTime: now, LastTransitionTime: now, Reason: "KubeletSays", Message: "kubelet reports this condition of the node",
		})
	}
	n.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)}, {Type: corev1.NodeHostName, Address: name},
	}
	n.Status.NodeInfo = corev1.NodeSystemInfo{
		MachineID: fmt.Sprintf("%032x", i), SystemUUID: fmt.Sprintf("%032x", i), BootID: fmt.Sprintf("%032x", i), KernelVersion: "6.1.0-amd64", OSImage: "Debian GNU/Linux 12 (bookworm)",
		ContainerRuntimeVersion: "containerd://2.1.0", KubeletVersion: "v1.37.1", OperatingSystem: "linux", Architecture: "amd64",
	}
	for k := range images {
		image := fmt.Sprintf("registry.example.com/project/image-%d", k)
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("%s@sha256:%064x", image, k), image + ":v1.2.3"}, SizeBytes: 50_000_000 + int64(k),
		})
	}
	return n
}

func csiNode(name string) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: v1alpha1.LocalDriverName, NodeID: name, TopologyKeys: []string{v1alpha1.TopologyKey}},
	}}}
}

// capacityOf is the object that publishes a node's capacity; its name is the
// node's.
func capacityOf(name string) *storagev1.CSIStorageCapacity {
	free := quantity(room)
	return &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Namespace: berthNamespace, Name: name},
		StorageClassName: class, NodeTopology: metav1.SetAsLabelSelector(map[string]string{v1alpha1.TopologyKey: name}),
		Capacity: &free, MaximumVolumeSize: &free,
	}
}

// lease of an agent that is believed for a day, so that it need not be renewed.
func lease(name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: berthNamespace, Name: v1alpha1.AgentLeasePrefix + name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(name), LeaseDurationSeconds: new(int32(86_400)), RenewTime: &metav1.MicroTime{Time: time.Now()},
		},
	}
}

func storageNode(name string) *v1alpha1.StorageNode {
	return &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.StorageNodeStatus{Pools: []v1alpha1.Pool{{
		Name: pool, Provisioner: v1alpha1.ProvisionerLVM, Health: v1alpha1.PoolHealthy, Classes: []string{class},
		Total: quantity(room), Foreign: quantity(0), LargestVolume: quantity(room), AllocationUnit: quantity(4 << 20),
	}}}}
}

func storageClass() *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: v1alpha1.LocalDriverName,
		Parameters:        map[string]string{"poolClass": class, "csi.storage.k8s.io/fstype": "ext4"},
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}
}

func csiDriver() *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.LocalDriverName}, Spec: storagev1.CSIDriverSpec{
		StorageCapacity: new(true), AttachRequired: new(false), PodInfoOnMount: new(true),
		VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral},
	}}
}
