package doctor

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
)

// claim compares a claim with the PersistentVolume that it names.
func (e *exam) claim(c *corev1.PersistentVolumeClaim) {
	f := Finding{Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name}
	name := c.Spec.VolumeName
	if name == "" {
		return
	}
	pv := e.pvs[name]
	switch {
	case pv == nil && !e.ours(c):
	case pv == nil && !e.Driver.Pools:
		f.Message = fmt.Sprintf("it names PersistentVolume %s, which does not exist: make it anew for the Volume that has the disk", name)
		e.add(ClaimLost, f, e.adopt(name, nameOf(c)))
	case pv == nil && c.Status.Phase == corev1.ClaimLost:
		f.Message = fmt.Sprintf("it was bound to PersistentVolume %s, which does not exist: delete the claim, which deletes no data, "+
			"adopt the data, and make the claim again with spec.volumeName", name)
		e.add(ClaimLost, f, fmt.Sprintf("kubectl delete pvc %s -n %s", c.Name, c.Namespace), e.adopt(name, nameOf(c)))
	case pv == nil:
		f.Message = fmt.Sprintf("it waits for PersistentVolume %s, which does not exist", name)
		e.add(ClaimLost, f, e.adopt(name, nameOf(c)))
	case e.Driver.Handle(pv) == "" || c.Status.Phase != corev1.ClaimBound && c.Status.Phase != corev1.ClaimLost:
	case pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.Namespace != c.Namespace || pv.Spec.ClaimRef.Name != c.Name || pv.Spec.ClaimRef.UID != c.UID:
		f.Message = fmt.Sprintf("it is bound to PersistentVolume %s, which is kept for %s", name, keeper(pv.Spec.ClaimRef))
		e.add(ClaimMisbound, f, "kubectl get pv "+name+" -o yaml", fmt.Sprintf("kubectl describe pvc %s -n %s", c.Name, c.Namespace))
	}
}

func keeper(ref *corev1.ObjectReference) string {
	if ref == nil {
		return "no claim"
	}
	return fmt.Sprintf("claim %s/%s with uid %q", ref.Namespace, ref.Name, ref.UID)
}

// persistentVolume compares a PersistentVolume of the driver with its claim and its Volume.
func (e *exam) persistentVolume(pv *corev1.PersistentVolume) {
	handle := e.Driver.Handle(pv)
	f := Finding{Kind: "PersistentVolume", Name: pv.Name}
	var claim *corev1.PersistentVolumeClaim
	if ref := pv.Spec.ClaimRef; ref != nil {
		f.Claim = ref.Namespace + "/" + ref.Name
		claim = e.claims[f.Claim]
	}
	if same := e.handles[handle]; len(same) > 1 && same[0] == pv {
		f := f
		f.Message = fmt.Sprintf("it and PersistentVolume %s stand for the same volume: deleting one can delete the data of both", same[1].Name)
		e.add(SharedHandle, f, "kubectl get pv "+same[0].Name+" "+same[1].Name+" -o yaml")
	}
	if held := refers(pv.Spec.ClaimRef, claim); !held && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID != "" && pv.DeletionTimestamp == nil {
		e.released(f, pv, handle)
	}
	switch v := e.volumes[handle]; {
	case pv.DeletionTimestamp != nil:
	case v == nil:
		f.Message = fmt.Sprintf("there is no Volume %s: no node serves its data", handle)
		e.add(VolumeLost, f, e.adopt(handle, ""))
	case !e.Driver.Owns(v):
		f.Message = fmt.Sprintf("Volume %s is of driver %s, and not of %s", handle, v.DriverName(), e.Driver.Name)
		e.add(DriverMismatch, f, "kubectl get bvol "+handle+" -o yaml")
	default:
		e.promise(f, pv, v)
	}
}

// released notes a PersistentVolume whose claim is gone.
func (e *exam) released(f Finding, pv *corev1.PersistentVolume, handle string) {
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		f.Message = "its claim is gone, and it retains the data: give it to a claim, or delete it and then the Volume"
		e.add(ClaimGone, f, e.adopt(handle, f.Claim))
		return
	}
	f.Message = "its claim is gone, and it is not deleted yet"
	if pv.Status.Message != "" {
		f.Message += ": " + pv.Status.Message
	}
	e.add(NotReclaimed, f, "kubectl describe pv "+pv.Name)
}

// promise compares what a PersistentVolume says with its Volume.
func (e *exam) promise(f Finding, pv *corev1.PersistentVolume, v *v1alpha1.Volume) {
	look := []string{"kubectl get bvol " + v.Name + " -o yaml", "kubectl get pv " + pv.Name + " -o yaml"}
	with := func(format string, args ...any) Finding {
		f.Message = fmt.Sprintf(format, args...)
		return f
	}
	if v.DeletionTimestamp != nil {
		e.add(VolumeGoing, with("its Volume %s is being deleted, and the data with it", v.Name), look...)
	}
	if size := pv.Spec.Capacity[corev1.ResourceStorage]; size.Cmp(v.Spec.Capacity) > 0 {
		e.add(SizeMismatch, with("it promises %s, and Volume %s asks its node for %s", size.String(), v.Name, v.Spec.Capacity.String()), look...)
	}
	mode := corev1.PersistentVolumeFilesystem
	if pv.Spec.VolumeMode != nil {
		mode = *pv.Spec.VolumeMode
	}
	if string(mode) != string(v.Spec.VolumeMode) {
		e.add(ModeMismatch, with("its volumeMode is %s, and that of Volume %s is %s", mode, v.Name, v.Spec.VolumeMode), look...)
	}
	if nodes := affinity(pv); nodes != nil && len(v.Spec.Replicas) > 0 && !slices.ContainsFunc(v.Spec.Replicas, func(r v1alpha1.ReplicaSpec) bool { return slices.Contains(nodes, r.Node) }) {
		e.add(AffinityMismatch, with("its pods go to node %s, and Volume %s is on node %s", nodes[0], v.Name, v.Spec.Replicas[0].Node), look...)
	}
}

// affinity returns the nodes that a PersistentVolume names; nil if it names none.
func affinity(pv *corev1.PersistentVolume) (nodes []string) {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return nil
	}
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, x := range term.MatchExpressions {
			if x.Key == v1alpha1.TopologyKey && x.Operator == corev1.NodeSelectorOpIn {
				nodes = append(nodes, x.Values...)
			}
		}
	}
	return nodes
}
