package oversight

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/podlife"
)

// proofsOf are what a Node says about itself: an administrator's taint, and the record of a power system.
// A Node that does not exist says nothing.
func proofsOf(n *corev1.Node) (proofs []ownership.Proof) {
	if n == nil {
		return nil
	}
	if outOfService(n) {
		proofs = append(proofs, ownership.Proof{Kind: ownership.OutOfService, Node: n.Name})
	}
	power, err := v1alpha1.ParsePowerRecord(n.Annotations[v1alpha1.PoweredOffAnnotation])
	if err == nil && power.Machine == n.Status.NodeInfo.SystemUUID {
		proofs = append(proofs, ownership.Proof{Kind: ownership.PowerOff, Node: n.Name, Boot: power.Boot})
	}
	return proofs
}

// outOfService tells whether the Node has the taint, with any effect, as Kubernetes takes it.
func outOfService(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// speaks tells whether a cached Node has anything that could be a proof. It decides whether the Node is
// worth reading, and nothing else.
func speaks(n *corev1.Node) bool {
	return outOfService(n) || n.Annotations[v1alpha1.PoweredOffAnnotation] != ""
}

// uses tells whether a pod uses the claim, by a reference in its spec.
func uses(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		switch {
		case v.PersistentVolumeClaim != nil:
			return v.PersistentVolumeClaim.ClaimName == claim.Name
		case v.Ephemeral != nil: // a claim of that name that the pod does not own is not used
			return pod.Name+"-"+v.Name == claim.Name && owned(claim, pod)
		}
		return false
	})
}

func owned(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) bool {
	for _, o := range claim.OwnerReferences {
		if o.UID == pod.UID {
			return true
		}
	}
	return false
}

// wanted are the nodes with a pod that has not ended, in order. A pod that is being deleted still has its
// mount.
func wanted(pods []corev1.Pod) (nodes []string) {
	for i := range pods {
		if p := &pods[i]; p.Spec.NodeName != "" && !podlife.Ended(p) {
			nodes = append(nodes, p.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// leftBehind are the pods that end because the writer on their node was fenced. The pods are older than
// the record. away tells whether a node is out of service or looks lost now, so that its kubelet ends no
// pod.
//
//	node of the pod                 the node is away     the node is there
//	fenced, by this record          ends                 ends if it had begun: its mount is dead
//	not the owner of a later epoch  ends if it had begun or is being deleted
//	                                                     ends if it had begun and is not being deleted
//	the owner                       stays                stays
//
// A pod that had not begun on a node that is there may get the next epoch. One that is being deleted there
// is ended by its kubelet. While no node owns an epoch and none was fenced, nothing is ended: the last
// owner has let go by itself.
//
// A backup may have brought the record back, from before an epoch in which the pod writes. Its node knows of that
// epoch, so heard tells whether the node was asked and answered. While one that is there does not, its pods are in
// doubt.
func leftBehind(v *ownership.Volume, pods []corev1.Pod, away, heard func(node string) bool) (end, doubt []*corev1.Pod) {
	for i := range pods {
		p := &pods[i]
		node := p.Spec.NodeName
		if node == "" || podlife.Ended(p) {
			continue
		}
		gone, deleted := away(node), p.DeletionTimestamp != nil
		fenced := isFenced(v, node)
		surpassed := !v.Sharing.ManyWriters && v.Primary.Phase.Open() && v.Primary.Node != node
		switch dead := (fenced || surpassed) && podlife.Begun(p) && !deleted; {
		case fenced && gone, dead && (gone || heard(node)), surpassed && gone && deleted:
			end = append(end, p)
		case dead:
			doubt = append(doubt, p)
		}
	}
	return end, doubt
}

// isFenced tells whether the node's epoch was ended by a fence.
func isFenced(v *ownership.Volume, node string) bool {
	p := v.On(node).Primary
	return p.Phase == ownership.Fenced && p.Node == node
}

// shut tells whether the node is fenced and has not said yet that it has stopped.
func shut(v *ownership.Volume, e *ownership.Replica) bool {
	return isFenced(v, e.Node) && e.Unstaged != v.On(e.Node).Epoch
}

// stranded are the pods that had begun on a node that has given its epoch up, in the boot that had taken
// it. A node that was cut off stops its writers, gives the epoch up, and releases it when the API server is
// there again. Within one boot a kubelet stages a volume for a pod once, so the mount stays dead. After another
// boot it stages anew, and such a pod waits for that.
//
// A node whose disk refuses it, or failed its writes until the filesystem shut itself down, gives the epoch up as well,
// and releases it only when no pod has the volume: such a pod gets errors of I/O for as long as it lives.
func stranded(v *ownership.Volume, pods []corev1.Pod, peers []ownership.Peer, boot func(node string) string) (dead []*corev1.Pod) {
	for i := range pods {
		p := &pods[i]
		began := overIn(v, peers, p.Spec.NodeName)
		if began != "" && podlife.Begun(p) && !podlife.Ended(p) && p.DeletionTimestamp == nil && boot(p.Spec.NodeName) == began {
			dead = append(dead, p)
		}
	}
	return dead
}

// overIn is the boot of the node in which its last epoch began, if that was released, or if the
// node itself answers that it has given it up. That answer goes before the record: a backup may have forgotten the
// epoch of one of several writers. It is empty if neither is so.
func overIn(v *ownership.Volume, peers []ownership.Peer, node string) (boot string) {
	own := v.On(node)
	if own.Primary.Node != node {
		return ""
	}
	if own.Primary.Phase.Open() || v.Sharing.ManyWriters && own.Primary.Phase != ownership.Fenced {
		for i := range peers {
			c := &peers[i].Copy
			if peers[i].Node == node && c.GaveUp(c.Opened) && c.Opened.Number >= own.Epoch.Number && c.Promise.Epoch == c.Opened {
				return c.Promise.Boot
			}
		}
	}
	if own.Primary.Phase == ownership.Released {
		return own.Primary.Boot
	}
	return ""
}

// owedAnAnswer tells whether a node owns an epoch, and its entry says that its attachment is not ready. The node may
// have given the epoch up, so that its pods must end. Only the node itself says so, and it may not have answered.
func owedAnAnswer(v *ownership.Volume) bool {
	return v.Kind.Traits().Attaches && slices.ContainsFunc(v.Writing(), func(node string) bool {
		e, has := v.Replica(node)
		return has && e.State != ownership.Ready
	})
}

// usable are the nodes from which a volume can be used, in order: those with a ready replica, and the
// owner, under whose mount the label stays. A fenced node is none until it says itself that it has stopped:
// its entry says Ready as it did before the fence. A replica that next, the record that is about to be
// written, removes is none any more.
func usable(v, next *ownership.Volume) (nodes []string) {
	for i := range v.Replicas {
		e := &v.Replicas[i]
		ready := e.State == ownership.Ready && !shut(v, e)
		if !ready && !owns(v, e.Node) {
			continue
		}
		if next != nil {
			if then, ok := next.Replica(e.Node); !ok || then.State == ownership.Removing {
				continue
			}
		}
		nodes = append(nodes, e.Node)
	}
	return nodes
}

// serve tells whether a pod that waits for a node can come to one of those nodes. It cannot come to one that is away,
// is no more, or is cordoned: there the volume would be out of reach until its attachment has expired.
func serve(q *question, nodes []string) bool {
	f := &q.facts
	return slices.ContainsFunc(nodes, func(node string) bool {
		m := machineOf(f, node)
		return !m.Away() && !m.Unlisted && (!m.Leaving || owns(f.Record, node))
	})
}

// machineOf is what is known of a node.
func machineOf(f *ownership.ControllerFacts, node string) ownership.Machine {
	for i := range f.Nodes {
		if f.Nodes[i].Name == node {
			return f.Nodes[i]
		}
	}
	return ownership.Machine{Name: node}
}

// owns tells whether the node may write by the record.
func owns(v *ownership.Volume, node string) bool {
	return slices.Contains(v.Writing(), node)
}

// waitsForNode tells whether a pod has no node yet.
func waitsForNode(pods []corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName == "" && !podlife.Ended(&p) })
}

// nowhere tells whether a pod waits for a node, and no node serves it by the record. Which nodes
// it can be opened to then depends on their guards and slots, and those bring no event to the volume.
func nowhere(q *question) bool {
	v := q.facts.Record
	return v.Kind.Traits().Attaches && !v.Deleting && waitsForNode(q.pods) && (v.Sharing.ManyWriters || !serve(q, usable(v, nil)))
}

// unowned tells whether a pod has its node, and waits there for a volume that no node owns. Mostly the node takes
// it within a second.
func unowned(q *question) bool {
	v := q.facts.Record
	return v.Kind.Traits().Attaches && !v.Deleting && v.Primary.Phase == ownership.Released && len(q.facts.Wanted) > 0
}

// adrift tells whether that lasts. A backup may have brought back a record that does not count the nodes which know
// a later epoch, and the disk is reserved for that epoch: then no node that the record counts can take it.
func adrift(q *question, now time.Time) bool {
	return unowned(q) && slices.ContainsFunc(q.pods, func(p corev1.Pod) bool {
		return p.Spec.NodeName != "" && !podlife.Ended(&p) && now.Sub(placed(&p)) >= later
	})
}

// placed is when a scheduler has placed the pod: long ago if it does not say.
func placed(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// open are the nodes from which a shared disk can be used that no node serves yet, in order. A pod's
// node that was chosen gets the attachment, and keeps the label meanwhile: the kubelet compares it again. As
// long as a pod waits for a node, each node is as good that can take an attachment. No label is set for a
// volume that no pod wants: there may be many of them, and a Node has room for few labels.
func open(q *question) (nodes []string) {
	f := &q.facts
	if !f.Record.Kind.Traits().Attaches || f.Record.Deleting {
		return nil
	}
	waits, spare := waitsForNode(q.pods), hasShare(f)
	for i := range f.Nodes {
		n := &f.Nodes[i]
		e, has := f.Record.Replica(n.Name)
		switch {
		case n.Lost, has && shut(f.Record, &e):
		case slices.Contains(f.Wanted, n.Name), waits && n.Fits && (has || spare && n.Slots > 0):
			nodes = append(nodes, n.Name)
		}
	}
	return nodes
}

// hasShare tells whether the disk has a share for one more node, or an attachment that can make way.
func hasShare(f *ownership.ControllerFacts) bool {
	v := f.Record
	return len(v.Replicas) < v.Sharing.MaxShares || slices.ContainsFunc(v.Replicas, func(e ownership.Replica) bool {
		return !owns(v, e.Node) && !machineOf(f, e.Node).Away()
	})
}
