package doctor

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
)

const (
	snapUID    = "7d0e3a52-9b1c-4f6e-a2d7-c5b8e1f40396"
	contentsOf = "snapcontent-" + snapUID
)

// photograph is a patient of which shop/before has a snapshot on node n1.
type photograph struct {
	patient
	vs, content *unstructured.Unstructured
	object      *v1alpha1.Snapshot
}

func photographed() photograph {
	p := sound()
	vs := unstructured.Unstructured{Object: map[string]any{
		"kind": "VolumeSnapshot", "metadata": map[string]any{"namespace": "shop", "name": "before", "uid": snapUID},
		"status": map[string]any{"boundVolumeSnapshotContentName": contentsOf, "readyToUse": true},
	}}
	content := unstructured.Unstructured{Object: map[string]any{
		"kind": "VolumeSnapshotContent", "metadata": map[string]any{"name": contentsOf},
		"spec": map[string]any{
			"driver": v1alpha1.LocalDriverName, "deletionPolicy": "Delete", "sourceVolumeMode": "Filesystem",
			"source":            map[string]any{"volumeHandle": data},
			"volumeSnapshotRef": map[string]any{"namespace": "shop", "name": "before", "uid": snapUID},
		},
		"status": map[string]any{"snapshotHandle": snap},
	}}
	s := v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: snap}}
	s.Spec.Volume, s.Spec.VolumeMode = data, v1alpha1.Filesystem
	s.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: "n1", Pool: "vg0"}}
	s.Status.Replicas = []v1alpha1.SnapshotReplica{{Node: "n1", State: v1alpha1.SnapshotReady, Taken: new(metav1.Unix(0, 0))}}
	p.api.VolumeSnapshots, p.api.Contents, p.Snapshots = []unstructured.Unstructured{vs}, []unstructured.Unstructured{content}, []v1alpha1.Snapshot{s}
	return photograph{p, &p.api.VolumeSnapshots[0], &p.api.Contents[0], &p.Snapshots[0]}
}

// set sets a field of an object; nil removes it.
func set(o *unstructured.Unstructured, value any, field ...string) {
	if value == nil {
		unstructured.RemoveNestedField(o.Object, field...)
		return
	}
	if err := unstructured.SetNestedField(o.Object, value, field...); err != nil {
		panic(err)
	}
}

func (p photograph) fails(reason string) {
	e := &p.object.Status.Replicas[0]
	e.State, e.Reason, e.Message = v1alpha1.SnapshotFailed, reason, "so it is"
}

func (p photograph) noObject()  { p.Snapshots = nil }
func (p photograph) noContent() { p.api.Contents = nil }
func (p photograph) noVS()      { p.api.VolumeSnapshots = nil }
func (p photograph) retain()    { set(p.content, "Retain", "spec", "deletionPolicy") }
func (p photograph) going()     { p.object.DeletionTimestamp = new(metav1.Unix(0, 0)) }
func (p photograph) untold()    { set(p.content, nil, "status") }

var (
	vsBefore    = "VolumeSnapshot shop/before"
	contentOne  = "VolumeSnapshotContent " + contentsOf
	objectN1    = "Snapshot " + snap + " on node n1"
	adoptSnap   = "kubectl berth adopt n1 " + snap
	descSnap    = "kubectl describe bsnap " + snap
	seeSnap     = "kubectl get bsnap " + snap + " -o yaml"
	lookContent = "kubectl get volumesnapshotcontent " + contentsOf + " -o yaml"
	descContent = "kubectl describe volumesnapshotcontent " + contentsOf
)

var snapshotDisagreements = map[string]struct {
	change func(p photograph)
	want   []string
}{
	"a snapshot with all its objects": {func(photograph) {}, nil},
	"the content is gone": {photograph.noContent, []string{
		wants(ContentLost, vsBefore, "kubectl delete volumesnapshot before -n shop", adoptSnap+" --volume-snapshot shop/before | kubectl apply -f -"),
		wants(Unreferenced, "Snapshot "+snap, adoptSnap)}},
	"the content that adopt printed is gone": {func(p photograph) {
		p.vs.SetUID("another")
		set(p.vs, snap, "status", "boundVolumeSnapshotContentName")
		p.noContent()
	}, []string{
		wants(ContentLost, vsBefore, "kubectl delete volumesnapshot before -n shop", adoptSnap+" --volume-snapshot shop/before | kubectl apply -f -"),
		wants(Unreferenced, "Snapshot "+snap, adoptSnap)}},
	"the content of another driver is gone": {func(p photograph) { p.noContent(); p.noObject() }, nil},
	"a content of another driver": {func(p photograph) {
		set(p.content, "other.example.org", "spec", "driver")
		p.noObject()
	}, nil},
	"the content is kept for another VolumeSnapshot": {func(p photograph) {
		set(p.content, "after", "spec", "volumeSnapshotRef", "name")
		set(p.content, nil, "spec", "volumeSnapshotRef", "uid")
	}, []string{wants(SnapshotMisbound, vsBefore, lookContent, "kubectl describe volumesnapshot before -n shop")}},
	"a VolumeSnapshot was made again under its name": {func(p photograph) { p.vs.SetUID(types.UID("another")); p.retain() }, []string{
		wants(SnapshotMisbound, vsBefore, lookContent, "kubectl describe volumesnapshot before -n shop"),
		wants(ContentReleased, contentOne, lookContent)}},
	"two contents stand for one snapshot": {func(p photograph) {
		again := *p.content.DeepCopy()
		again.SetName("again")
		set(&again, nil, "spec", "volumeSnapshotRef", "uid")
		p.api.Contents = append(p.api.Contents, again)
	}, []string{wants(SharedSnapshot, contentOne, "kubectl get volumesnapshotcontent "+contentsOf+" again -o yaml")}},
	"the VolumeSnapshot is gone, and its content retains the data": {func(p photograph) { p.noVS(); p.retain() }, []string{wants(ContentReleased, contentOne, lookContent)}},
	"the VolumeSnapshot is gone, and its content stays":            {photograph.noVS, []string{wants(ContentNotReclaimed, contentOne, descContent)}},
	"a content waits for its first VolumeSnapshot": {func(p photograph) {
		p.noVS()
		set(p.content, nil, "spec", "volumeSnapshotRef", "uid")
	}, nil},
	"the Snapshot is gone": {photograph.noObject, []string{wants(SnapshotLost, contentOne, "kubectl berth orphans")}},
	"the Snapshot is gone, and its node reports the data": {func(p photograph) { p.noObject(); p.orphan(snap, v1alpha1.OrphanNoObject) },
		[]string{wants(SnapshotLost, contentOne, adoptSnap)}},
	"a snapshot is being taken":                        {func(p photograph) { p.noObject(); p.untold() }, nil},
	"a snapshot was taken, and its content knows soon": {photograph.untold, nil},
	"a snapshot cannot be taken": {func(p photograph) {
		p.noObject()
		p.untold()
		set(p.content, "there is no room", "status", "error", "message")
	}, []string{wants(NotTaken, contentOne, descContent)}},
	"the Snapshot is of another driver":          {func(p photograph) { p.object.Spec.Driver = "other.example.org" }, []string{wants(DriverMismatch, contentOne, seeSnap)}},
	"the Snapshot of a content is being deleted": {photograph.going, []string{wants(SnapshotGoing, contentOne, seeSnap, lookContent)}},
	"the content promises a block device":        {func(p photograph) { set(p.content, "Block", "spec", "sourceVolumeMode") }, []string{wants(ModeMismatch, contentOne, seeSnap, lookContent)}},
	"no one refers to a Snapshot":                {func(p photograph) { p.noVS(); p.noContent() }, []string{wants(Unreferenced, "Snapshot "+snap, adoptSnap)}},

	"a snapshot lost its object":                 {func(p photograph) { p.noVS(); p.noContent(); p.noObject(); p.orphan(snap, v1alpha1.OrphanNoObject) }, []string{wants(ObjectLost, objectN1, adoptSnap)}},
	"a snapshot lost its data":                   {func(p photograph) { p.fails(v1alpha1.ReasonDeviceMissing) }, []string{wants(DataMissing, objectN1, descN1, descSnap)}},
	"a snapshot lost its pool":                   {func(p photograph) { p.fails(v1alpha1.ReasonPoolMissing) }, []string{wants(PoolMissing, objectN1, pools, descN1)}},
	"the node has no room for a snapshot":        {func(p photograph) { p.fails(v1alpha1.ReasonNoSpace) }, []string{wants(NotTaken, objectN1, descSnap)}},
	"the node has another snapshot of that name": {func(p photograph) { p.fails(v1alpha1.ReasonConflict) }, []string{wants(Conflict, objectN1, "kubectl berth orphans -o wide", descSnap)}},
	"the node has said nothing about a Snapshot": {func(p photograph) { p.object.Status.Replicas = nil }, []string{wants(NotAnswered, objectN1, podsN1)}},
	"the node of a Snapshot does not report":     {func(p photograph) { p.noNode(); p.healthy() }, []string{wants(NodeGone, objectN1, "kubectl get node n1")}},
	"the node of a new Snapshot does not report": {func(p photograph) { p.noNode(); p.healthy(); p.object.Status.Replicas = nil }, []string{wants(NodeGone, objectN1, "kubectl get node n1", descSnap)}},
	"a deleted Snapshot is in use": {func(p photograph) {
		p.noVS()
		p.noContent()
		p.going()
		p.fails(v1alpha1.ReasonInUse)
	}, []string{wants(Undeleted, objectN1, descSnap)}},
}

// healthy takes the volume away, which shares the fate of its node.
func (p photograph) healthy() { p.noVolume(); p.noPV(); p.noClaim() }

func TestWithoutTheSnapshotAPIOnlyTheNodesAreCompared(t *testing.T) {
	p := photographed()
	found := Examine(Cluster{Lists: p.Lists, Heartbeats: p.away, System: "berth-system"})
	if len(found) != 0 {
		t.Errorf("found %+v", found)
	}
	p.fails(v1alpha1.ReasonDeviceMissing)
	if found = Examine(Cluster{Lists: p.Lists, Heartbeats: p.away, System: "berth-system"}); len(found) != 1 || found[0].ID != DataMissing {
		t.Errorf("found %+v", found)
	}
}
