package schedule

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/storageclass"
	"berth.dev/berth/internal/usecase/volumes"
)

// SelectedNode is the annotation in which a scheduler writes the node of a claim.
const SelectedNode = volumes.SelectedNode

// claim converts a claim of one of the driver's classes. Its size is that of the volume to come: a
// filesystem may need more than was asked for. An error means that there will be no volume.
func claim(d driver.Driver, c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) (ledger.ClaimObject, error) {
	request, err := volumes.ForClaim(d, c, class)
	if err != nil {
		return ledger.ClaimObject{}, err
	}
	bytes, err := request.Bytes()
	if err != nil {
		return ledger.ClaimObject{}, err
	}
	out := ledger.ClaimObject{UID: string(c.UID), Class: request.PoolClass, Requested: bytes, Bound: c.Spec.VolumeName != ""}
	if !populated(c) {
		out.SelectedNode = c.Annotations[SelectedNode]
	}
	return out, nil
}

// populated reports whether another claim's volume will become this one's: its data
// comes from an object that the provisioner does not know.
func populated(c *corev1.PersistentVolumeClaim) bool {
	source := sourceOf(c)
	return source != nil && !copies(source)
}

// pod converts a pod, with its inline volumes of the driver. Malformed ones are left
// out: their node refuses them.
func pod(d driver.Driver, p *corev1.Pod) ledger.PodObject {
	out := ledger.PodObject{
		UID:       string(p.UID),
		Namespace: p.Namespace,
		Node:      p.Spec.NodeName,
		Started:   started(p),
		Ended:     p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
	}
	for i := range p.Spec.Volumes {
		if !d.Describes(&p.Spec.Volumes[i]) {
			continue
		}
		if v, _, err := inline(&p.Spec.Volumes[i]); err == nil {
			out.Inline = append(out.Inline, v)
		}
	}
	return out
}

// inline reads an inline volume of the driver, and the feature that its node's agent must have.
func inline(v *corev1.Volume) (volume ledger.InlineVolume, feature string, err error) {
	asked, err := storageclass.ParseInline(v.CSI.VolumeAttributes)
	if err != nil {
		return ledger.InlineVolume{}, "", err
	}
	if v.CSI.FSType != nil {
		asked.FSType = cmp.Or(asked.FSType, v1alpha1.FSType(*v.CSI.FSType))
	}
	bytes, err := volumes.InlineBytes(asked)
	made := volumes.Request{FSType: asked.FSType, MkfsOptions: asked.MkfsOptions}
	return ledger.InlineVolume{Name: v.Name, Class: asked.PoolClass, Bytes: bytes}, made.Feature(), err
}

// HasInline says whether a pod has inline volumes of the driver.
func HasInline(d driver.Driver, p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return d.Describes(&v) })
}

// started reports whether a container ran: then the volumes exist.
func started(p *corev1.Pod) bool {
	ran := func(s corev1.ContainerStatus) bool { return s.State.Running != nil || s.State.Terminated != nil }
	return slices.ContainsFunc(p.Status.InitContainerStatuses, ran) || slices.ContainsFunc(p.Status.ContainerStatuses, ran)
}
