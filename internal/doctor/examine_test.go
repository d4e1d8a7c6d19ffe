package doctor

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule"
)

const (
	uid  = "0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f"
	data = "pvc-" + uid
	snap = "snap-7d0e3a52-9b1c-4f6e-a2d7-c5b8e1f40396"
)

// silent maps silent nodes to the reason.
type silent map[string]string

func (s silent) Away(node string) string { return s[node] }
func (silent) Notify(func(string))       {}

// patient is a cluster in which all agrees: the claim shop/db has a volume on node n1.
type patient struct {
	*schedule.Lists
	claim  *corev1.PersistentVolumeClaim
	pv     *corev1.PersistentVolume
	volume *v1alpha1.Volume
	node   *v1alpha1.StorageNode
	away   silent
	api    *SnapshotAPI
}

func sound() patient {
	l := &schedule.Lists{Driver: driver.Local()}
	l.StorageClasses = []storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: v1alpha1.LocalDriverName}}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: uid}}
	claim.Spec.VolumeName, claim.Spec.StorageClassName, claim.Status.Phase = data, new("local"), corev1.ClaimBound
	pv := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: data}}
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "db", UID: uid}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.LocalDriverName, VolumeHandle: data}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: v1alpha1.TopologyKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}}}
	v := v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: data}}
	v.Spec = v1alpha1.VolumeSpec{
		Capacity: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Filesystem, Replicas: []v1alpha1.ReplicaSpec{{Node: "n1", Pool: "vg0"}},
		ClaimRef: &v1alpha1.ClaimReference{Namespace: "shop", Name: "db", UID: uid},
	}
	v.Status.Replicas = []v1alpha1.ReplicaStatus{{Node: "n1", Pool: "vg0", State: v1alpha1.ReplicaReady, Ready: true, Capacity: new(resource.MustParse("1Gi"))}}
	n := v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	n.Status.Pools = []v1alpha1.Pool{{Name: "vg0", Health: v1alpha1.PoolHealthy}}
	l.Claims, l.PersistentVolumes = []corev1.PersistentVolumeClaim{claim}, []corev1.PersistentVolume{pv}
	l.Volumes, l.StorageNodes = []v1alpha1.Volume{v}, []v1alpha1.StorageNode{n}
	return patient{l, &l.Claims[0], &l.PersistentVolumes[0], &l.Volumes[0], &l.StorageNodes[0], silent{}, &SnapshotAPI{}}
}

// entry is the node's entry in the Volume.
func (p patient) entry() *v1alpha1.ReplicaStatus { return &p.volume.Status.Replicas[0] }

func (p patient) fails(reason string) {
	p.entry().State, p.entry().Reason, p.entry().Message = v1alpha1.ReplicaFailed, reason, "so it is"
}

// orphan makes the node report data as an orphan.
func (p patient) orphan(name string, reason v1alpha1.OrphanReason) *v1alpha1.Orphan {
	o := &v1alpha1.Orphan{Since: metav1.Unix(0, 0), Reason: reason, Message: "it has no object"}
	i := v1alpha1.InventoryItem{Volume: name, Orphan: o}
	if v1alpha1.IsSnapshotName(name) {
		i = v1alpha1.InventoryItem{Snapshot: name, Orphan: o}
	}
	p.node.Status.Pools[0].Inventory = append(p.node.Status.Pools[0].Inventory, i)
	return o
}

// noVolume and the others take a link out of the chain.
func (p patient) noVolume() { p.Volumes = nil }
func (p patient) noPV()     { p.PersistentVolumes = nil }
func (p patient) noClaim()  { p.Claims = nil }
func (p patient) noNode()   { p.StorageNodes = nil }

func (p patient) going() { p.volume.DeletionTimestamp = new(metav1.Unix(0, 0)) }

// wants is a finding in short: identifier, subject, and the commands of the way out.
func wants(id ID, subject string, next ...string) string {
	return string(id) + ": " + subject + "\n  " + strings.Join(next, "\n  ")
}

var (
	claimDB = "PersistentVolumeClaim shop/db"
	pvDB    = "PersistentVolume " + data + " of claim shop/db"
	volDB   = "Volume " + data + " of claim shop/db"
	onN1    = volDB + " on node n1"
	adopt   = "kubectl berth adopt n1 " + data
	adoptDB = adopt + " --claim shop/db"
	seeVol  = "kubectl get bvol " + data + " -o yaml"
	seePV   = "kubectl get pv " + data + " -o yaml"
	descVol = "kubectl describe bvol " + data
	descN1  = "kubectl describe bsn n1"
	podsN1  = "kubectl get pods -n berth-system --field-selector spec.nodeName=n1"
	pools   = "kubectl berth pools -o wide"
)

var disagreements = map[string]struct {
	change func(p patient)
	want   []string
}{
	"all agrees": {func(patient) {}, nil},
	"the PersistentVolume is gone, and the claim knows": {func(p patient) { p.noPV(); p.claim.Status.Phase = corev1.ClaimLost },
		[]string{wants(ClaimLost, claimDB, "kubectl delete pvc db -n shop", adoptDB)}},
	"a claim waits for a PersistentVolume that does not exist": {func(p patient) { p.noPV(); p.claim.Status.Phase = corev1.ClaimPending },
		[]string{wants(ClaimLost, claimDB, adoptDB)}},
	"a claim of another driver lost its PersistentVolume": {func(p patient) {
		p.noPV()
		p.noVolume()
		p.claim.Spec.StorageClassName = new("other")
	}, nil},
	"the PersistentVolume is kept for another claim": {func(p patient) {
		p.pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "copy"}
	}, []string{wants(ClaimMisbound, claimDB, seePV, "kubectl describe pvc db -n shop")}},
	"two PersistentVolumes stand for one volume": {func(p patient) {
		again := *p.pv.DeepCopy()
		again.Name, again.Spec.ClaimRef = "again", nil
		p.PersistentVolumes = append(p.PersistentVolumes, again)
	}, []string{wants(SharedHandle, pvDB, "kubectl get pv "+data+" again -o yaml")}},
	"the Volume is gone, and its node does not say that it has the data": {patient.noVolume, []string{wants(VolumeLost, pvDB, "kubectl berth orphans")}},
	"the Volume is gone, and its node reports the data": {func(p patient) { p.noVolume(); p.orphan(data, v1alpha1.OrphanNoObject) },
		[]string{wants(VolumeLost, pvDB, adopt)}},
	"the Volume is of another driver":        {func(p patient) { p.volume.Spec.Driver = "other.example.org" }, []string{wants(DriverMismatch, pvDB, seeVol)}},
	"the Volume of a claim is being deleted": {patient.going, []string{wants(VolumeGoing, pvDB, seeVol, seePV)}},
	"the PersistentVolume promises more than the Volume has": {func(p patient) {
		p.pv.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi")
	}, []string{wants(SizeMismatch, pvDB, seeVol, seePV)}},
	"the PersistentVolume promises a block device": {func(p patient) { p.pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) },
		[]string{wants(ModeMismatch, pvDB, seeVol, seePV)}},
	"the PersistentVolume sends its pods to another node": {func(p patient) {
		p.pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0] = "n2"
	}, []string{wants(AffinityMismatch, pvDB, seeVol, seePV)}},
	"the claim is gone, and the PersistentVolume retains the data": {func(p patient) {
		p.noClaim()
		p.pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}, []string{wants(ClaimGone, pvDB, adoptDB)}},
	"another claim has the name of the one that is gone": {func(p patient) {
		p.claim.UID, p.claim.Spec.VolumeName, p.claim.Status.Phase = "another", "", corev1.ClaimPending
		p.pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}, []string{wants(ClaimGone, pvDB, adoptDB)}},
	"a PersistentVolume waits for its first claim":      {func(p patient) { p.noClaim(); p.pv.Spec.ClaimRef.UID = "" }, nil},
	"the claim is gone, and the PersistentVolume stays": {patient.noClaim, []string{wants(NotReclaimed, pvDB, "kubectl describe pv "+data)}},
	"nothing refers to the Volume":                      {func(p patient) { p.noClaim(); p.noPV() }, []string{wants(Unreferenced, volDB, adoptDB)}},
	"nothing refers to a reservation yet": {func(p patient) {
		p.noClaim()
		p.noPV()
		p.volume.Annotations = map[string]string{v1alpha1.ReservedAnnotation: ""}
	}, nil},
	"the claim of a new Volume has no PersistentVolume yet": {func(p patient) { p.noPV(); p.claim.Spec.VolumeName = "" }, nil},
	"the Volume has no node":                                {func(p patient) { p.volume.Spec.Replicas, p.volume.Status.Replicas = nil, nil }, []string{wants(Unplaced, volDB, "kubectl berth explain pvc db -n shop")}},
	"the node does not report":                              {patient.noNode, []string{wants(NodeGone, onN1, "kubectl get node n1", descVol)}},
	"the node has said nothing about the Volume":            {func(p patient) { p.volume.Status.Replicas = nil }, []string{wants(NotAnswered, onN1, podsN1)}},
	"the node no longer has the data":                       {func(p patient) { p.fails(v1alpha1.ReasonDeviceMissing) }, []string{wants(DataMissing, onN1, descN1, descVol)}},
	"the node says that the pool is not there":              {func(p patient) { p.fails(v1alpha1.ReasonPoolMissing) }, []string{wants(PoolMissing, onN1, pools, descN1)}},
	"the node has other data of that name":                  {func(p patient) { p.fails(v1alpha1.ReasonConflict) }, []string{wants(Conflict, onN1, adoptDB)}},
	"the node has no room":                                  {func(p patient) { p.fails(v1alpha1.ReasonNoSpace) }, []string{wants(NotMade, onN1, "kubectl berth explain pvc db -n shop", descVol)}},
	"the node has the data in another pool":                 {func(p patient) { p.entry().Pool = "vg1" }, []string{wants(PoolMismatch, onN1, descVol)}},
	"the node's report does not have the pool":              {func(p patient) { p.node.Status.Pools = nil }, []string{wants(PoolMissing, onN1, pools, descN1)}},
	"the pool of a ready replica is missing":                {func(p patient) { p.node.Status.Pools[0].Health = v1alpha1.PoolMissing }, []string{wants(PoolMissing, onN1, pools, descN1)}},
	"the replica is smaller than the Volume":                {func(p patient) { p.entry().Capacity = new(resource.MustParse("512Mi")) }, []string{wants(NotGrown, onN1, descVol)}},
	"a node has data that is not wanted there": {func(p patient) {
		p.volume.Status.Replicas = append(p.volume.Status.Replicas, v1alpha1.ReplicaStatus{Node: "n2", State: v1alpha1.ReplicaReady})
	}, []string{wants(Leftover, volDB+" on node n2", descVol)}},
	"a deleted Volume waits for a node that left": {func(p patient) { p.going(); p.noNode(); p.noPV(); p.noClaim() }, []string{wants(Undeleted, onN1, "kubectl get node n1", "kubectl berth forget n1 --node-is-gone")}},
	"a deleted Volume waits for a lost pool": {func(p patient) { p.going(); p.noPV(); p.noClaim(); p.fails(v1alpha1.ReasonPoolMissing) },
		[]string{wants(Undeleted, onN1, pools, "kubectl berth forget n1 "+data)}},
	"the data of a deleted Volume is in use": {func(p patient) { p.going(); p.noPV(); p.noClaim(); p.fails(v1alpha1.ReasonInUse) }, []string{wants(Undeleted, onN1, descVol)}},
	"a deleted Volume does not wait for a node that is forgotten": {func(p patient) {
		p.going()
		p.noNode()
		p.noPV()
		p.noClaim()
		v1alpha1.SetForgottenNodes(p.volume, []string{"n1"})
	}, nil},
	"all objects of the data are lost": {func(p patient) { p.noClaim(); p.noPV(); p.noVolume(); p.orphan(data, v1alpha1.OrphanNoObject) },
		[]string{wants(ObjectLost, "Volume "+data+" on node n1", adopt)}},
	"an old backup has the claim, unbound": {func(p patient) {
		p.noPV()
		p.noVolume()
		p.claim.Spec.VolumeName = ""
		p.orphan(data, v1alpha1.OrphanNoObject).Deadline = new(metav1.NewTime(time.Unix(0, 0)))
	}, []string{wants(ObjectLost, onN1, adoptDB)}},
	"a snapshot lost its object":              {func(p patient) { p.orphan(snap, v1alpha1.OrphanNoObject) }, []string{wants(ObjectLost, "Snapshot "+snap+" on node n1", "kubectl berth adopt n1 "+snap)}},
	"a Volume does not know of data":          {func(p patient) { p.orphan(data, v1alpha1.OrphanNotPlaced) }, []string{wants(SecondCopy, onN1, "kubectl berth orphans -o wide", seeVol)}},
	"the node is away":                        {func(p patient) { p.away["n1"] = "the Node is not ready" }, []string{wants(NodeAway, "StorageNode n1", "kubectl get node n1", podsN1)}},
	"the agent cannot list the node's pools":  {func(p patient) { p.node.Status.Conditions[0].Status = metav1.ConditionFalse }, []string{wants(NodeNotReady, "StorageNode n1", descN1, podsN1)}},
	"the agent has not reported on its pools": {func(p patient) { p.node.Status.Conditions = nil }, []string{wants(NodeNotReady, "StorageNode n1", descN1, podsN1)}},
}

func (p patient) examine() []Finding {
	return Examine(Cluster{Lists: p.Lists, Heartbeats: p.away, SnapshotAPI: p.api, System: "berth-system"})
}

func check(t *testing.T, found []Finding, want []string, seen map[ID]bool) {
	t.Helper()
	var got []string
	for _, f := range found {
		seen[f.ID] = true
		got = append(got, wants(f.ID, f.Subject(), f.Next...))
		if f.Message == "" || f.Severity == "" || len(f.Next) == 0 {
			t.Errorf("%+v lacks a message, a severity or a way out", f)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEachDisagreementIsFoundWithTheWayOut(t *testing.T) {
	seen := map[ID]bool{}
	for name, tc := range disagreements {
		t.Run(name, func(t *testing.T) {
			p := sound()
			tc.change(p)
			check(t, p.examine(), tc.want, seen)
		})
	}
	for name, tc := range snapshotDisagreements {
		t.Run(name, func(t *testing.T) {
			s := photographed()
			tc.change(s)
			check(t, s.examine(), tc.want, seen)
		})
	}
	for _, id := range IDs() {
		if !seen[id] {
			t.Errorf("no row of the tables has %s", id)
		}
	}
}

func TestAFindingOfOneLookOnlyIsNotConfirmed(t *testing.T) {
	late, stays := sound(), sound()
	late.noVolume()
	stays.fails(v1alpha1.ReasonDeviceMissing)
	if got := Confirmed(late.examine(), sound().examine()); len(got) != 0 || got == nil {
		t.Errorf("a list that was late is reported: %+v", got)
	}
	if got := Confirmed(late.examine(), stays.examine()); len(got) != 0 {
		t.Errorf("a finding that is new is reported: %+v", got)
	}
	if got := Confirmed(stays.examine(), stays.examine()); len(got) != 1 || got[0].ID != DataMissing {
		t.Errorf("got %+v", got)
	}
}

func TestTheUrgentFindingsComeFirst(t *testing.T) {
	p := sound()
	p.away["n1"] = "the Node is not ready"
	p.fails(v1alpha1.ReasonDeviceMissing)
	p.noClaim()
	p.noPV()
	var got []Severity
	for _, f := range p.examine() {
		got = append(got, f.Severity)
	}
	if diff := cmp.Diff([]Severity{Error, Warning, Info}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheDocumentationHasARowForEachDisagreement(t *testing.T) {
	text, err := os.ReadFile("../../docs/kubectl.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range IDs() {
		if row := "| `" + string(id) + "` | " + string(severities[id]) + " |"; !strings.Contains(string(text), row) {
			t.Errorf("docs/kubectl.md lacks %q", row)
		}
	}
}
