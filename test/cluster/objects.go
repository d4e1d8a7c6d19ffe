package cluster

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/api/v1alpha1"
)

// Image is the image of the pods: busybox, built by the lab.
const Image = "localhost/busybox:1"

// MountPath is where a pod has its first volume.
const MountPath = "/data"

// DevicePath is where a pod has its first raw block volume.
const DevicePath = "/dev/volume"

// ClaimOption changes a claim that Claim makes.
type ClaimOption func(*corev1.PersistentVolumeClaim)

// Raw asks for a block device.
func Raw(c *corev1.PersistentVolumeClaim) {
	c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
}

// Claim returns a claim for one node at a time.
func Claim(namespace, name, class, size string, opts ...ClaimOption) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			},
		},
	}
	for _, o := range opts {
		o(c)
	}
	return c
}

// PodOption changes a pod that Pod makes.
type PodOption func(*corev1.Pod)

// OnNode pins a pod to a node by its host name label, so that the scheduler still
// places the pod.
func OnNode(node string) PodOption {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node} }
}

// Steadfast keeps a pod on a node that is away. Other pods are evicted from there.
func Steadfast(p *corev1.Pod) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		p.Spec.Tolerations = append(p.Spec.Tolerations,
			corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	}
}

// Pod runs until it is stopped, with each claim mounted: the first at MountPath
// or DevicePath, the others with their position appended.
func Pod(namespace, name string, claims []*corev1.PersistentVolumeClaim, opts ...PodOption) *corev1.Pod {
	container := corev1.Container{
		Name:            "main",
		Image:           Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{"sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			TerminationGracePeriodSeconds: new(int64(5)),
		},
	}
	for i, claim := range claims {
		addVolume(&pod.Spec, &container, claim, suffix(i))
	}
	pod.Spec.Containers = []corev1.Container{container}
	for _, o := range opts {
		o(pod)
	}
	return pod
}

func addVolume(spec *corev1.PodSpec, container *corev1.Container, claim *corev1.PersistentVolumeClaim, suffix string) {
	name := "volume" + suffix
	spec.Volumes = append(spec.Volumes, corev1.Volume{
		Name: name,
		VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		},
	})
	if ptr.Deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeBlock {
		container.VolumeDevices = append(container.VolumeDevices, corev1.VolumeDevice{Name: name, DevicePath: DevicePath + suffix})
		return
	}
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: MountPath + suffix})
}

func suffix(i int) string {
	if i == 0 {
		return ""
	}
	return string(rune('0' + i))
}

// PoolClass returns a class over volume groups.
func PoolClass(name string, groups ...string) *v1alpha1.PoolClass {
	return &v1alpha1.PoolClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.PoolClassSpec{
			Provisioner: v1alpha1.ProvisionerLVM,
			LVM:         &v1alpha1.LVMPools{VolumeGroups: groups},
		},
	}
}

// StorageClass returns a class that provisions from a PoolClass when the first pod is scheduled.
func StorageClass(name string, parameters map[string]string) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta:           metav1.ObjectMeta{Name: name},
		Provisioner:          v1alpha1.LocalDriverName,
		Parameters:           parameters,
		ReclaimPolicy:        ptr.To(corev1.PersistentVolumeReclaimDelete),
		AllowVolumeExpansion: new(true),
		VolumeBindingMode:    ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
	}
}
