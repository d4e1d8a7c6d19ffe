package survey

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/storageclass"
	"berth.dev/berth/internal/usecase/luns"
)

// SharedClaim says how a claim of a shared disk stands.
type SharedClaim struct {
	Namespace string `json:"namespace"`
	Claim     string `json:"claim"`
	// Volume is empty for a claim that has none yet.
	Volume string `json:"volume,omitempty"`
	// State of the volume, and what it, or the claim, waits for.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	// Replicas of the volume: the nodes that have the disk.
	Replicas []Replica `json:"replicas"`
}

// SharedClaims says of each of the claims that are of shared disks how it stands.
func (c Cluster) SharedClaims(namespace string, names []string) (found []SharedClaim) {
	for i := range c.Claims {
		if claim := &c.Claims[i]; claim.Namespace == namespace && slices.Contains(names, claim.Name) {
			if s, shared := c.sharedClaim(claim); shared {
				found = append(found, s)
			}
		}
	}
	return found
}

func (c Cluster) sharedClaim(claim *corev1.PersistentVolumeClaim) (s SharedClaim, shared bool) {
	s = SharedClaim{Namespace: claim.Namespace, Claim: claim.Name, State: VolumeWaiting, Replicas: []Replica{}}
	class, disk := c.classOf(claim), driver.Disk()
	if claim.Spec.VolumeName == "" {
		if class == nil || !disk.Provisions(class) {
			return s, false
		}
		s.Message = "it has no volume yet: " + c.whyNoVolume(claim, class)
		return s, true
	}
	i := slices.IndexFunc(c.PersistentVolumes, func(pv corev1.PersistentVolume) bool { return pv.Name == claim.Spec.VolumeName })
	if i < 0 {
		s.Message = fmt.Sprintf("PersistentVolume %s does not exist: see kubectl berth doctor", claim.Spec.VolumeName)
		return s, class != nil && disk.Provisions(class)
	}
	if s.Volume = disk.Handle(&c.PersistentVolumes[i]); s.Volume == "" {
		return s, false
	}
	v := c.volumeOf(&c.PersistentVolumes[i])
	if v == nil {
		s.Message = fmt.Sprintf("its Volume %s does not exist: see kubectl berth doctor", s.Volume)
		return s, true
	}
	s.State, s.Message = StateOf(v)
	s.Replicas = c.ReplicaRows(func(o *v1alpha1.Volume) bool { return o == v })
	return s, true
}

func (c Cluster) classOf(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	i := slices.IndexFunc(c.StorageClasses, func(class storagev1.StorageClass) bool {
		return claim.Spec.StorageClassName != nil && class.Name == *claim.Spec.StorageClassName
	})
	if i < 0 {
		return nil
	}
	return &c.StorageClasses[i]
}

// whyNoVolume says what a claim without a volume waits for.
func (c Cluster) whyNoVolume(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) string {
	block := claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == corev1.PersistentVolumeBlock
	p, err := storageclass.ParseDisk(class.Parameters, block)
	many := slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany)
	if err == nil && many {
		err = p.ManyWriters()
	}
	if err != nil {
		return fmt.Sprintf("StorageClass %s: %v", class.Name, err)
	}
	size, limit := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Spec.Resources.Limits[corev1.ResourceStorage]
	lun, shortage := luns.Choose(p.PoolClass, size.Value(), limit.Value(), many, c.LUNs, c.Volumes)
	switch {
	case lun == nil:
		return shortage
	case late(class) && claim.Annotations[schedule.SelectedNode] == "" && len(podsOf(c.Pods)[claimKey{claim.Namespace, claim.Name}]) == 0:
		return fmt.Sprintf("it waits for the first pod that uses it. LUN %s is free", lun.Name)
	}
	return fmt.Sprintf("LUN %s is free. Events tell what is missing: kubectl describe pvc %s -n %s", lun.Name, claim.Name, claim.Namespace)
}

// late says whether a class makes volumes for pods only.
func late(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// LUNs counts the disks that are declared.
type LUNs struct {
	// Available LUNs can be handed out.
	Available int `json:"available"`
	Of        int `json:"of"`
}

func (s *Status) luns(all []v1alpha1.LUN) {
	if len(all) == 0 {
		return
	}
	s.LUNs = &LUNs{Of: len(all)}
	for i := range all {
		l := &all[i]
		switch {
		case l.Status.State == v1alpha1.LUNAvailable:
			s.LUNs.Available++
		case l.Status.State != v1alpha1.LUNWiping && l.Status.Message != "": // a wipe is work in progress
			s.problem("LUN %s is %s: %s", l.Name, l.Status.State, l.Status.Message)
		}
	}
}
