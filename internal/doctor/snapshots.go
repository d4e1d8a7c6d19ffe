package doctor

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/quarantine"
)

// SnapshotAPI holds the objects of the snapshot API. They are read without their Go types: a handful of
// fields is not worth the dependency.
type SnapshotAPI struct {
	VolumeSnapshots, Contents []unstructured.Unstructured
}

// content is a VolumeSnapshotContent of the driver.
type content struct {
	*unstructured.Unstructured
	// handle is the name of its Snapshot. While a snapshot is being taken the content does not say it
	// yet, but it follows from the uid of the VolumeSnapshot.
	handle string
	// keeper is the VolumeSnapshot that it is kept for, as NAMESPACE/NAME, and uid is that one's; empty if
	// any of the name may have it.
	keeper, uid string
	// named says whether the content itself names the Snapshot.
	named bool
}

func text(o *unstructured.Unstructured, field ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, field...)
	return value
}

// handleOf returns the name of the Snapshot that csi-snapshotter asks for in the name of a VolumeSnapshot.
func handleOf(uid string) string { return v1alpha1.SnapshotName("snapshot-" + uid) }

// indexSnapshots sorts the objects of the snapshot API by name and by handle.
func (e *exam) indexSnapshots() {
	for i := range e.Snapshots {
		e.snapshots[e.Snapshots[i].Name] = &e.Snapshots[i]
	}
	if e.SnapshotAPI == nil {
		return
	}
	for i := range e.SnapshotAPI.VolumeSnapshots {
		s := &e.SnapshotAPI.VolumeSnapshots[i]
		e.volumeSnapshots[nameOf(s)] = s
	}
	for i := range e.SnapshotAPI.Contents {
		c := content{Unstructured: &e.SnapshotAPI.Contents[i]}
		if !e.Driver.Took(text(c.Unstructured, "spec", "driver")) {
			continue
		}
		c.keeper = text(c.Unstructured, "spec", "volumeSnapshotRef", "namespace") + "/" + text(c.Unstructured, "spec", "volumeSnapshotRef", "name")
		c.uid = text(c.Unstructured, "spec", "volumeSnapshotRef", "uid")
		c.handle = cmp.Or(text(c.Unstructured, "status", "snapshotHandle"), text(c.Unstructured, "spec", "source", "snapshotHandle"))
		if c.named = c.handle != ""; !c.named {
			c.handle = handleOf(c.uid)
		}
		e.contents[c.GetName()] = c
		e.taken[c.handle] = append(e.taken[c.handle], c)
	}
}

func (e *exam) examineSnapshots() {
	for i := range e.Snapshots {
		if s := &e.Snapshots[i]; e.Driver.Owns(s) {
			e.snapshot(s)
		}
	}
	for _, s := range e.volumeSnapshots {
		e.volumeSnapshot(s)
	}
	for _, c := range e.contents {
		e.content(c)
	}
}

// volumeSnapshot compares a VolumeSnapshot with the VolumeSnapshotContent that it names.
func (e *exam) volumeSnapshot(s *unstructured.Unstructured) {
	f := Finding{Kind: "VolumeSnapshot", Namespace: s.GetNamespace(), Name: s.GetName()}
	name := text(s, "status", "boundVolumeSnapshotContentName")
	if name == "" || s.GetDeletionTimestamp() != nil {
		return
	}
	c, ours := e.contents[name]
	switch {
	case !ours && e.exists(name):
	case !ours:
		handle := name // contents that adopt printed have the name of their Snapshot
		if !v1alpha1.IsSnapshotName(handle) {
			handle = handleOf(string(s.GetUID()))
		}
		if e.snapshots[handle] == nil && len(e.orphans[handle]) == 0 {
			return // nothing says that it was the driver's
		}
		f.Message = fmt.Sprintf("it was bound to VolumeSnapshotContent %s, which does not exist: delete the VolumeSnapshot, which deletes no data, "+
			"and make it again from Snapshot %s", name, handle)
		e.add(ContentLost, f, fmt.Sprintf("kubectl delete volumesnapshot %s -n %s", s.GetName(), s.GetNamespace()),
			fmt.Sprintf("%s --volume-snapshot %s | kubectl apply -f -", e.adoptSnapshot(handle), nameOf(s)))
	case c.keeper != nameOf(s) || c.uid != "" && c.uid != string(s.GetUID()):
		f.Message = fmt.Sprintf("it is bound to VolumeSnapshotContent %s, which is kept for %s with uid %q", name, c.keeper, c.uid)
		e.add(SnapshotMisbound, f, "kubectl get volumesnapshotcontent "+name+" -o yaml", fmt.Sprintf("kubectl describe volumesnapshot %s -n %s", s.GetName(), s.GetNamespace()))
	}
}

// exists says whether there is a VolumeSnapshotContent of that name, of any driver.
func (e *exam) exists(name string) bool {
	for i := range e.SnapshotAPI.Contents {
		if e.SnapshotAPI.Contents[i].GetName() == name {
			return true
		}
	}
	return false
}

// content compares a VolumeSnapshotContent with its VolumeSnapshot and its Snapshot.
func (e *exam) content(c content) {
	f := Finding{Kind: "VolumeSnapshotContent", Name: c.GetName()}
	if same := e.taken[c.handle]; len(same) > 1 && same[0].Unstructured == c.Unstructured {
		f.Message = fmt.Sprintf("it and VolumeSnapshotContent %s stand for the same snapshot: deleting one can delete the data of both", same[1].GetName())
		e.add(SharedSnapshot, f, fmt.Sprintf("kubectl get volumesnapshotcontent %s %s -o yaml", c.GetName(), same[1].GetName()))
	}
	if c.GetDeletionTimestamp() != nil {
		return
	}
	if keeper := e.volumeSnapshots[c.keeper]; c.uid != "" && (keeper == nil || c.uid != string(keeper.GetUID())) {
		if text(c.Unstructured, "spec", "deletionPolicy") == "Retain" {
			f.Message = fmt.Sprintf("its VolumeSnapshot %s is gone, and it retains the data", c.keeper)
			e.add(ContentReleased, f, seeContent(c))
		} else {
			f.Message = fmt.Sprintf("its VolumeSnapshot %s is gone, and it is not deleted yet", c.keeper)
			e.add(ContentNotReclaimed, f, "kubectl describe volumesnapshotcontent "+c.GetName())
		}
	}
	if s := e.snapshots[c.handle]; s != nil {
		e.stands(f, c, s)
		return
	}
	switch failure := text(c.Unstructured, "status", "error", "message"); {
	case c.named:
		f.Message = fmt.Sprintf("there is no Snapshot %s: no node serves its data", c.handle)
		e.add(SnapshotLost, f, e.adoptSnapshot(c.handle))
	case failure != "": // else it is being taken
		f.Message = "the snapshot cannot be taken: " + failure
		e.add(NotTaken, f, "kubectl describe volumesnapshotcontent "+c.GetName())
	}
}

func seeContent(c content) string {
	return "kubectl get volumesnapshotcontent " + c.GetName() + " -o yaml"
}

// stands compares a VolumeSnapshotContent with the Snapshot that it stands for.
func (e *exam) stands(f Finding, c content, s *v1alpha1.Snapshot) {
	see := "kubectl get bsnap " + s.Name + " -o yaml"
	mode := text(c.Unstructured, "spec", "sourceVolumeMode")
	switch {
	case !e.Driver.Owns(s):
		f.Message = fmt.Sprintf("Snapshot %s is of driver %s, and not of %s", s.Name, s.DriverName(), e.Driver.Name)
		e.add(DriverMismatch, f, see)
	case s.DeletionTimestamp != nil:
		f.Message = fmt.Sprintf("its Snapshot %s is being deleted, and the data with it", s.Name)
		e.add(SnapshotGoing, f, see, seeContent(c))
	case mode != "" && mode != string(s.Spec.VolumeMode):
		f.Message = fmt.Sprintf("its sourceVolumeMode is %s, and the volumeMode of Snapshot %s is %s", mode, s.Name, s.Spec.VolumeMode)
		e.add(ModeMismatch, f, see, seeContent(c))
	}
}

// adoptSnapshot returns the command that makes the objects of a snapshot, if it is known where its data is.
func (e *exam) adoptSnapshot(name string) string {
	if s := e.snapshots[name]; s != nil && len(s.Spec.Replicas) == 1 {
		return fmt.Sprintf("kubectl berth adopt %s %s", s.Spec.Replicas[0].Node, name)
	}
	return e.adopt(name, "")
}

// snapshot compares a Snapshot with those who refer to it, and with the nodes that it names. What a node
// has lost is in the list of orphans.
func (e *exam) snapshot(s *v1alpha1.Snapshot) {
	f := Finding{Kind: "Snapshot", Name: s.Name}
	if s.DeletionTimestamp == nil && e.SnapshotAPI != nil && len(e.taken[s.Name]) == 0 {
		f := f
		f.Message = "no VolumeSnapshotContent refers to its data: adopt it, or delete the Snapshot and its data"
		e.add(Unreferenced, f, e.adoptSnapshot(s.Name))
	}
	for _, wish := range s.Spec.Replicas {
		f := f
		f.Node = wish.Node
		entry, describe := s.Entry(wish.Node), "kubectl describe bsnap "+s.Name
		switch {
		case e.nodes[wish.Node] == nil:
			if entry == nil && s.DeletionTimestamp == nil { // with an entry it is in the list of orphans
				f.Message = "the node does not report: whether the snapshot was taken is not known"
				e.add(NodeGone, f, "kubectl get node "+wish.Node, describe)
			}
		case entry == nil && s.DeletionTimestamp == nil && e.Heartbeats.Away(wish.Node) == "":
			f.Message = "the node has not said anything about it"
			e.add(NotAnswered, f, podsOn(wish.Node, e.System))
		case entry == nil || entry.State != v1alpha1.SnapshotFailed, entry.Reason == v1alpha1.ReasonDeviceMissing, entry.Reason == v1alpha1.ReasonPoolMissing:
		case s.DeletionTimestamp != nil:
			f.Message = fmt.Sprintf("it is being deleted, and the node says %s: %s", entry.Reason, entry.Message)
			e.add(Undeleted, f, describe)
		case entry.Reason == v1alpha1.ReasonConflict:
			f.Message = fmt.Sprintf("the node says %s: %s", entry.Reason, entry.Message)
			e.add(Conflict, f, "kubectl berth orphans -o wide", describe)
		default:
			f.Message = fmt.Sprintf("the node says %s: %s", entry.Reason, entry.Message)
			e.add(NotTaken, f, describe)
		}
	}
}

// lostSnapshot notes a Snapshot whose data is missing.
func (e *exam) lostSnapshot(o quarantine.Orphan) {
	f := Finding{Kind: "Snapshot", Name: o.Name, Node: o.Node, Message: fmt.Sprintf("the node says %s: %s", o.Reason, o.Message)}
	switch o.Reason {
	case quarantine.ReasonNodeGone:
		f.Message = o.Message
		e.add(NodeGone, f, "kubectl get node "+o.Node)
	case v1alpha1.ReasonPoolMissing:
		e.add(PoolMissing, f, "kubectl berth pools -o wide", "kubectl describe bsn "+o.Node)
	default:
		e.add(DataMissing, f, "kubectl describe bsn "+o.Node, "kubectl describe bsnap "+o.Name)
	}
}
