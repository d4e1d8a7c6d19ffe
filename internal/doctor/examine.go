package doctor

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/quarantine"
	"berth.dev/berth/internal/schedule"
)

// Cluster holds the objects of a cluster, of one look.
type Cluster struct {
	*schedule.Lists
	Heartbeats schedule.Heartbeats
	// SnapshotAPI is nil if the cluster has none, or if it may not be read.
	SnapshotAPI *SnapshotAPI
	// System is the namespace that Berth is installed in.
	System string
}

// exam is an examination of a cluster, with its objects by name.
type exam struct {
	Cluster
	claims  map[string]*corev1.PersistentVolumeClaim // by namespace/name
	pvs     map[string]*corev1.PersistentVolume
	handles map[string][]*corev1.PersistentVolume // by the volume that they stand for
	volumes map[string]*v1alpha1.Volume
	nodes   map[string]*v1alpha1.StorageNode
	orphans map[string][]quarantine.Orphan // data that its nodes report as orphans, by name

	snapshots       map[string]*v1alpha1.Snapshot
	volumeSnapshots map[string]*unstructured.Unstructured // by namespace/name
	contents        map[string]content                    // those of the driver
	taken           map[string][]content                  // by the snapshot that they stand for

	found []Finding
}

// Examine returns every disagreement, the urgent ones first. The rules about claims, PersistentVolumes and
// Volumes hold for shared disks, too; snapshots and what nodes have in pools are of local volumes alone.
func Examine(c Cluster) []Finding {
	pools := begin(c, c.Driver)
	pools.indexSnapshots()
	pools.volumesAndClaims()
	pools.examineSnapshots()
	for _, o := range quarantine.Find(c.StorageNodes, nil, c.Snapshots) {
		if o.Missing == quarantine.MissingObject {
			pools.orphan(o)
		} else {
			pools.lostSnapshot(o)
		}
	}
	for i := range c.StorageNodes {
		pools.node(&c.StorageNodes[i])
	}
	disks := begin(c, driver.Disk())
	disks.volumesAndClaims()
	found := append(pools.found, disks.found...)
	slices.SortStableFunc(found, order)
	return found
}

// begin indexes the cluster for the examination of one driver.
func begin(c Cluster, of driver.Driver) *exam {
	lists := *c.Lists
	lists.Driver, c.Lists = of, &lists
	e := &exam{
		Cluster: c, claims: map[string]*corev1.PersistentVolumeClaim{}, pvs: map[string]*corev1.PersistentVolume{},
		handles: map[string][]*corev1.PersistentVolume{}, volumes: map[string]*v1alpha1.Volume{},
		nodes: map[string]*v1alpha1.StorageNode{}, orphans: map[string][]quarantine.Orphan{}, found: []Finding{},
		snapshots: map[string]*v1alpha1.Snapshot{}, volumeSnapshots: map[string]*unstructured.Unstructured{},
		contents: map[string]content{}, taken: map[string][]content{},
	}
	e.index()
	return e
}

func (e *exam) volumesAndClaims() {
	for i := range e.Claims {
		e.claim(&e.Claims[i])
	}
	for i := range e.PersistentVolumes {
		if pv := &e.PersistentVolumes[i]; e.Driver.Handle(pv) != "" {
			e.persistentVolume(pv)
		}
	}
	for i := range e.Volumes {
		if v := &e.Volumes[i]; e.Driver.Owns(v) {
			e.volume(v)
		}
	}
}

func (e *exam) index() {
	for i := range e.Claims {
		e.claims[nameOf(&e.Claims[i])] = &e.Claims[i]
	}
	for i := range e.PersistentVolumes {
		pv := &e.PersistentVolumes[i]
		e.pvs[pv.Name] = pv
		if handle := e.Driver.Handle(pv); handle != "" {
			e.handles[handle] = append(e.handles[handle], pv)
		}
	}
	for i := range e.Volumes {
		e.volumes[e.Volumes[i].Name] = &e.Volumes[i]
	}
	for i := range e.StorageNodes {
		e.nodes[e.StorageNodes[i].Name] = &e.StorageNodes[i]
	}
	if !e.Driver.Pools { // which alone have data that nodes report
		return
	}
	for _, o := range quarantine.Find(e.StorageNodes, nil, nil) {
		e.orphans[o.Name] = append(e.orphans[o.Name], o)
	}
}

// add notes a finding.
func (e *exam) add(id ID, f Finding, next ...string) {
	f.ID, f.Severity, f.Next = id, severities[id], next
	e.found = append(e.found, f)
}

func nameOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// refers says whether a reference of a PersistentVolume is to an existing claim. A reference
// without a uid waits for any claim of the name.
func refers(ref *corev1.ObjectReference, claim *corev1.PersistentVolumeClaim) bool {
	return ref != nil && claim != nil && (ref.UID == "" || ref.UID == claim.UID)
}

// ours says whether a claim is, or was, for a volume of the driver.
func (e *exam) ours(claim *corev1.PersistentVolumeClaim) bool {
	if v := e.volumes[claim.Spec.VolumeName]; v != nil && e.Driver.Owns(v) || len(e.orphans[claim.Spec.VolumeName]) > 0 {
		return true
	}
	return claim.Spec.StorageClassName != nil && slices.ContainsFunc(e.StorageClasses, func(c storagev1.StorageClass) bool {
		return c.Name == *claim.Spec.StorageClassName && e.Driver.Provisions(&c)
	})
}

// adopt returns the command that gives data to a claim, if it is known to be on one node. That of a shared disk
// is on no node: its LUN says what becomes of the disk.
func (e *exam) adopt(name, claim string) string {
	if !e.Driver.Pools {
		return "kubectl get luns,bvol -o wide"
	}
	var nodes []string
	if v := e.volumes[name]; v != nil {
		for _, r := range v.Spec.Replicas {
			nodes = append(nodes, r.Node)
		}
	}
	if len(nodes) == 0 {
		for _, o := range e.orphans[name] {
			nodes = append(nodes, o.Node)
		}
	}
	if len(nodes) != 1 {
		return "kubectl berth orphans"
	}
	command := fmt.Sprintf("kubectl berth adopt %s %s", nodes[0], name)
	if claim != "" {
		command += " --claim " + claim
	}
	return command
}

// node notes that a node's report may be old.
func (e *exam) node(n *v1alpha1.StorageNode) {
	f := Finding{Kind: "StorageNode", Name: n.Name, Node: n.Name}
	if away := e.Heartbeats.Away(n.Name); away != "" {
		f.Message = "its report may be old: " + away
		e.add(NodeAway, f, "kubectl get node "+n.Name, podsOn(n.Name, e.System))
		return
	}
	switch ready := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionReady); {
	case ready == nil:
		f.Message = "its agent has not reported yet"
	case ready.Status != metav1.ConditionTrue:
		f.Message = "its agent cannot list all data: " + ready.Message
	default:
		return
	}
	e.add(NodeNotReady, f, "kubectl describe bsn "+n.Name, podsOn(n.Name, e.System))
}

// podsOn returns the command that shows the agent of a node, in the namespace of Berth.
func podsOn(node, system string) string {
	return fmt.Sprintf("kubectl get pods -n %s --field-selector spec.nodeName=%s", system, node)
}
