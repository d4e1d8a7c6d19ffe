package survey

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
)

type claimKey struct{ namespace, name string }

// claimsOfVolumes maps Volumes to the claims that have them. A PersistentVolume may have been bound to another
// claim since its Volume was made, so its word comes before the Volume's own.
func (c Cluster) claimsOfVolumes() map[string]claimKey {
	uids, drivers := map[claimKey]types.UID{}, map[string]string{}
	for i := range c.Claims {
		uids[claimKey{c.Claims[i].Namespace, c.Claims[i].Name}] = c.Claims[i].UID
	}
	for i := range c.Volumes {
		drivers[c.Volumes[i].Name] = c.Volumes[i].DriverName()
	}
	// A claim that was made anew under the name has another volume.
	same := func(key claimKey, uid types.UID) bool {
		found, exists := uids[key]
		return !exists || uid == "" || found == "" || found == uid
	}
	stands, claims := map[string]bool{}, map[string]claimKey{}
	for i := range c.PersistentVolumes {
		pv := &c.PersistentVolumes[i]
		if pv.Spec.CSI == nil || drivers[pv.Spec.CSI.VolumeHandle] != pv.Spec.CSI.Driver {
			continue
		}
		volume := pv.Spec.CSI.VolumeHandle
		stands[volume] = true
		if ref := pv.Spec.ClaimRef; ref != nil && same(claimKey{ref.Namespace, ref.Name}, ref.UID) {
			claims[volume] = claimKey{ref.Namespace, ref.Name}
		}
	}
	for i := range c.Volumes {
		v := &c.Volumes[i]
		if ref := v.Spec.ClaimRef; ref != nil && !stands[v.Name] && same(claimKey{ref.Namespace, ref.Name}, ref.UID) {
			claims[v.Name] = claimKey{ref.Namespace, ref.Name}
		}
	}
	return claims
}

// podsOf maps claims to the pods that have not ended and use them.
func podsOf(pods []corev1.Pod) map[claimKey][]*corev1.Pod {
	out := map[claimKey][]*corev1.Pod{}
	for i := range pods {
		p := &pods[i]
		if ended(p) {
			continue
		}
		for _, claim := range ClaimsOf(p) {
			key := claimKey{p.Namespace, claim}
			out[key] = append(out[key], p)
		}
	}
	return out
}

func namesOf(pods []*corev1.Pod) (names []string) {
	for _, p := range pods {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// ClaimsOf are the names of the claims that a pod uses, also of those that are made for it alone.
func ClaimsOf(p *corev1.Pod) (names []string) {
	for i := range p.Spec.Volumes {
		switch v := &p.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, p.Name+"-"+v.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Users are the pods that have not ended and use the claims of volumes, by the volume's name.
func (c Cluster) Users() map[string][]*corev1.Pod {
	pods, users := podsOf(c.Pods), map[string][]*corev1.Pod{}
	for volume, claim := range c.claimsOfVolumes() {
		users[volume] = pods[claim]
	}
	return users
}

// volumeOf is the Volume that a PersistentVolume stands for, nil if there is none.
func (c Cluster) volumeOf(pv *corev1.PersistentVolume) *v1alpha1.Volume {
	i := slices.IndexFunc(c.Volumes, func(v v1alpha1.Volume) bool {
		return pv.Spec.CSI != nil && v.Name == pv.Spec.CSI.VolumeHandle && v.DriverName() == pv.Spec.CSI.Driver
	})
	if i < 0 {
		return nil
	}
	return &c.Volumes[i]
}
