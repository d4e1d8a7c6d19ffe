package doctor

import (
	"fmt"
	"slices"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/quarantine"
)

// volume compares a Volume with those who refer to it, and with the nodes that it names.
func (e *exam) volume(v *v1alpha1.Volume) {
	f := Finding{Kind: "Volume", Name: v.Name}
	if ref := v.Spec.ClaimRef; ref != nil {
		f.Claim = ref.Namespace + "/" + ref.Name
	}
	if v.DeletionTimestamp != nil {
		e.deleting(f, v)
		return
	}
	if !v.Reserved() && len(e.handles[v.Name]) == 0 && !e.claimed(v, f.Claim) {
		f := f
		f.Message = "neither a claim nor a PersistentVolume refers to its data: adopt it, or delete the Volume and its data"
		if !e.Driver.Pools {
			f.Message = "neither a claim nor a PersistentVolume refers to its disk: make a PersistentVolume for it, or delete the Volume"
		}
		e.add(Unreferenced, f, e.adopt(v.Name, f.Claim))
	}
	if !e.Driver.Pools { // its record of ownership says where it is
		return
	}
	if len(v.Spec.Replicas) == 0 {
		f.Message = "it has no node yet"
		e.add(Unplaced, f, explain(v))
	}
	for _, wish := range v.Spec.Replicas {
		e.replica(f, v, wish)
	}
	for _, r := range v.Status.Replicas {
		if v.Wish(r.Node) == nil && r.State != v1alpha1.ReplicaGone {
			f := f
			f.Node, f.Message = r.Node, "the node has data of it that is not wanted there any more: it goes when its agent answers"
			e.add(Leftover, f, "kubectl describe bvol "+v.Name)
		}
	}
}

// claimed says whether the claim that a Volume was made for exists.
func (e *exam) claimed(v *v1alpha1.Volume, claim string) bool {
	found := e.claims[claim]
	return found != nil && (v.Spec.ClaimRef.UID == "" || v.Spec.ClaimRef.UID == found.UID)
}

// explain returns the command that says why a Volume is not made.
func explain(v *v1alpha1.Volume) string {
	if ref := v.Spec.ClaimRef; ref != nil {
		return fmt.Sprintf("kubectl berth explain pvc %s -n %s", ref.Name, ref.Namespace)
	}
	return "kubectl describe bvol " + v.Name
}

// replica compares a Volume with the node of one of its replicas.
func (e *exam) replica(f Finding, v *v1alpha1.Volume, wish v1alpha1.ReplicaSpec) {
	f.Node = wish.Node
	describe := "kubectl describe bvol " + v.Name
	n, entry := e.nodes[wish.Node], v.Entry(wish.Node)
	switch {
	case n == nil:
		f.Message = "the node does not report: the data is where the node is, and is found when the node returns"
		e.add(NodeGone, f, "kubectl get node "+wish.Node, describe)
	case entry == nil && e.Heartbeats.Away(wish.Node) == "":
		f.Message = "the node has not said anything about it"
		e.add(NotAnswered, f, podsOn(wish.Node, e.System))
	case entry == nil || entry.State == v1alpha1.ReplicaCopying || entry.State == v1alpha1.ReplicaGone:
	case entry.State == v1alpha1.ReplicaFailed:
		e.failed(f, v, entry)
	case entry.Pool != wish.Pool:
		f.Message = fmt.Sprintf("it is wanted in pool %s, and the node has it in pool %s", wish.Pool, entry.Pool)
		e.add(PoolMismatch, f, describe)
	case !hasPool(n, wish.Pool):
		f.Message = fmt.Sprintf("the node said that it has it, and reports no pool %s now", wish.Pool)
		e.add(PoolMissing, f, "kubectl berth pools -o wide", "kubectl describe bsn "+wish.Node)
	case entry.Capacity != nil && entry.Capacity.Cmp(v.Spec.Capacity) < 0:
		f.Message = fmt.Sprintf("it should have %s, and has %s", v.Spec.Capacity.String(), entry.Capacity.String())
		e.add(NotGrown, f, describe)
	}
}

func hasPool(n *v1alpha1.StorageNode, name string) bool {
	return slices.ContainsFunc(n.Status.Pools, func(p v1alpha1.Pool) bool { return p.Name == name && p.Health != v1alpha1.PoolMissing })
}

// failed notes what a node says is wrong with its replica.
func (e *exam) failed(f Finding, v *v1alpha1.Volume, entry *v1alpha1.ReplicaStatus) {
	f.Message = fmt.Sprintf("the node says %s: %s", entry.Reason, entry.Message)
	switch entry.Reason {
	case v1alpha1.ReasonDeviceMissing:
		e.add(DataMissing, f, "kubectl describe bsn "+entry.Node, "kubectl describe bvol "+v.Name)
	case v1alpha1.ReasonPoolMissing:
		e.add(PoolMissing, f, "kubectl berth pools -o wide", "kubectl describe bsn "+entry.Node)
	case v1alpha1.ReasonConflict:
		next := fmt.Sprintf("kubectl berth adopt %s %s", entry.Node, v.Name)
		if f.Claim != "" {
			next += " --claim " + f.Claim
		}
		e.add(Conflict, f, next)
	default:
		e.add(NotMade, f, explain(v), "kubectl describe bvol "+v.Name)
	}
}

// deleting notes the nodes that a Volume waits for.
func (e *exam) deleting(f Finding, v *v1alpha1.Volume) {
	var nodes []string
	for _, r := range v.Spec.Replicas {
		nodes = append(nodes, r.Node)
	}
	for _, r := range v.Status.Replicas {
		nodes = append(nodes, r.Node)
	}
	slices.Sort(nodes)
	forgotten := v1alpha1.ForgottenNodes(v)
	for _, node := range slices.Compact(nodes) {
		f.Node = node
		switch entry := v.Entry(node); {
		case entry != nil && entry.State == v1alpha1.ReplicaGone || slices.Contains(forgotten, node):
		case e.nodes[node] == nil:
			f.Message = "it is being deleted, and waits for a node that does not report: if the node does not come back, forget it"
			e.add(Undeleted, f, "kubectl get node "+node, "kubectl berth forget "+node+" --node-is-gone")
		case entry != nil && entry.Reason == v1alpha1.ReasonPoolMissing && entry.HasData():
			f.Message = "it is being deleted, and waits for a pool that is not there: if the pool does not come back, forget it"
			e.add(Undeleted, f, "kubectl berth pools -o wide", "kubectl berth forget "+node+" "+v.Name)
		case entry != nil && entry.State == v1alpha1.ReplicaFailed:
			f.Message = fmt.Sprintf("it is being deleted, and the node says %s: %s", entry.Reason, entry.Message)
			e.add(Undeleted, f, "kubectl describe bvol "+v.Name)
		}
	}
}

// orphan notes data that no object accounts for. Data of a PersistentVolume without a Volume,
// or of a VolumeSnapshotContent without a Snapshot, is noted there.
func (e *exam) orphan(o quarantine.Orphan) {
	f := Finding{Kind: "Volume", Name: o.Name, Node: o.Node, Message: o.Message}
	if v1alpha1.IsSnapshotName(o.Name) {
		f.Kind = "Snapshot"
	}
	for name, claim := range e.claims {
		if v1alpha1.VolumeName("pvc-"+string(claim.UID)) == o.Name {
			f.Claim = name
		}
	}
	if f.Message == "" {
		f.Message = "the node has its data, and no object accounts for it"
	}
	if o.Deadline != nil {
		f.Message += "; the node deletes the data at " + o.Deadline.UTC().Format("2006-01-02 15:04 UTC")
	}
	command := fmt.Sprintf("kubectl berth adopt %s %s", o.Node, o.Name)
	if f.Claim != "" {
		command += " --claim " + f.Claim
	}
	switch v := e.volumes[o.Name]; {
	case v == nil && len(e.handles[o.Name])+len(e.taken[o.Name]) > 0 && len(e.orphans[o.Name]) == 1:
	case v == nil && len(e.orphans[o.Name]) == 1 && o.Reason != string(v1alpha1.OrphanNotPlaced):
		e.add(ObjectLost, f, command)
	default:
		f.Message += "; other data or a Volume has the same name: compare them before you adopt or forget one"
		e.add(SecondCopy, f, "kubectl berth orphans -o wide", "kubectl get bvol "+o.Name+" -o yaml")
	}
}
