package places

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/oversight"
	"berth.dev/berth/internal/driver"
)

const id = "pvc-00000000-0000-0000-0000-000000000001"

// world is what Places has seen of one volume, which is attached to n1 and used by a pod there, and of node n2.
type world struct {
	*Places
	clock   *clocktesting.FakeClock
	volume  *v1alpha1.Volume
	node    *corev1.Node
	csiNode *storagev1.CSINode
	lease   *coordinationv1.Lease
	claim   *corev1.PersistentVolumeClaim
	pv      *corev1.PersistentVolume
	pod     *corev1.Pod
}

func newWorld() *world {
	now := time.Unix(1000, 0)
	w := &world{clock: clocktesting.NewFakeClock(now)}
	w.Places = New(driver.Disk(), w.clock)
	w.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2", Labels: map[string]string{"rack": "r"}}}
	w.node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	w.csiNode = &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n2"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: "local.berth.dev"}, {Name: "disk.berth.dev", Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(3))}}}}}
	w.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.GuardLeasePrefix + "n2"}}
	w.lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
	w.volume = &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: id}}
	w.volume.Spec.Driver, w.volume.Spec.Replication = "disk.berth.dev", v1alpha1.Replication{
		Factor: 2, Kind: v1alpha1.ReplicationAttachments, Attachments: &v1alpha1.Attachments{MaxShares: 2}}
	w.claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "c"}}
	w.claim.Spec.VolumeName = "pv"
	w.pv = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
	w.pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.berth.dev", VolumeHandle: id}
	w.pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "c"}
	w.pv.Spec.NodeAffinity = driver.Disk().Affinity(id)
	w.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "p"}}
	w.pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	return w
}

// sees hands the objects to the handlers, as informers do.
func (w *world) sees() {
	handler(w.Places, w.observeNode, w.forgetNode).OnAdd(w.node, true)
	handler(w.Places, w.observeCSINode, w.forgetCSINode).OnAdd(w.csiNode, true)
	handler(w.Places, w.observeLease, w.forgetLease).OnAdd(w.lease, true)
	handler(w.Places, w.observeVolume, w.forgetVolume).OnAdd(w.volume, true)
	handler(w.Places, w.observeClaim, w.forgetClaim).OnAdd(w.claim, true)
	handler(w.Places, w.observePV, w.forgetPV).OnAdd(w.pv, true)
	handler(w.Places, w.observePod, w.forgetPod).OnAdd(w.pod, true)
}

func (w *world) place() oversight.Place { return w.Places.Places(w.volume, []string{"n2"})["n2"] }

func TestWhatObjectsSayOfANode(t *testing.T) {
	rack := func(value string) *corev1.VolumeNodeAffinity {
		a := driver.Disk().Affinity(id)
		term := &a.Required.NodeSelectorTerms[0]
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: "rack", Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
		return a
	}
	for name, test := range map[string]struct {
		change func(w *world)
		fits   bool
		slots  int
	}{
		"all is well":                            {func(*world) {}, true, 3},
		"the Node does not say that it is ready": {func(w *world) { w.node.Status.Conditions = nil }, false, 3},
		"it is cordoned":                         {func(w *world) { w.node.Spec.Unschedulable = true }, false, 3},
		"it is tainted":                          {func(w *world) { w.node.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}} }, false, 3},
		"only another driver is registered":      {func(w *world) { w.csiNode.Spec.Drivers = w.csiNode.Spec.Drivers[:1] }, false, 64},
		"the CSINode names no limit":             {func(w *world) { w.csiNode.Spec.Drivers[1].Allocatable = nil }, true, 64},
		"there is no guard":                      {func(w *world) { w.lease.Name = v1alpha1.AgentLeasePrefix + "n2" }, false, 3},
		"only the kubelet has a lease":           {func(w *world) { w.lease.Name = "n2" }, false, 3},
		"the guard has not renewed its lease":    {func(w *world) { w.lease.Spec.RenewTime = nil }, false, 3},
		"another condition comes first": {func(w *world) {
			w.node.Status.Conditions = append([]corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}}, w.node.Status.Conditions...)
		}, true, 3},
		"the Node says that it is not ready":   {func(w *world) { w.node.Status.Conditions[0].Status = corev1.ConditionUnknown }, false, 3},
		"the CSINode names an empty limit":     {func(w *world) { w.csiNode.Spec.Drivers[1].Allocatable.Count = nil }, true, 64},
		"the disk reaches any node":            {func(w *world) { w.pv.Spec.NodeAffinity = nil }, true, 3},
		"the disk's affinity requires nothing": {func(w *world) { w.pv.Spec.NodeAffinity.Required = nil }, true, 3},
		"the disk's affinity has an empty term, which selects no node": {func(w *world) {
			w.pv.Spec.NodeAffinity.Required.NodeSelectorTerms = []corev1.NodeSelectorTerm{{}}
		}, false, 3},
		"the disk's affinity names a node's field": {func(w *world) {
			w.pv.Spec.NodeAffinity.Required.NodeSelectorTerms = []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}
		}, false, 3},
		"the disk's affinity cannot be read": {func(w *world) {
			w.pv.Spec.NodeAffinity = rack("r")
			w.pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[1].Operator = "Near"
		}, false, 3},
		"a pod that has failed asks for nothing": {func(w *world) {
			w.pod.Spec.NodeSelector, w.pod.Status.Phase = map[string]string{"rack": "s"}, corev1.PodFailed
		}, true, 3},
		"the disk reaches the node's rack": {func(w *world) { w.pv.Spec.NodeAffinity = rack("r") }, true, 3},
		"the disk reaches another rack":    {func(w *world) { w.pv.Spec.NodeAffinity = rack("s") }, false, 3},
		"the pod asks for another rack":    {func(w *world) { w.pod.Spec.NodeSelector = map[string]string{"rack": "s"} }, false, 3},
		"a pod that has ended asks for nothing": {func(w *world) {
			w.pod.Spec.NodeSelector, w.pod.Status.Phase = map[string]string{"rack": "s"}, corev1.PodSucceeded
		}, true, 3},
		"the claim is another one of that name": {func(w *world) {
			w.pod.Spec.NodeSelector, w.claim.UID = map[string]string{"rack": "s"}, "d"
		}, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			test.change(w)
			w.sees()
			if p := w.place(); p.Fits != test.fits || p.Slots != test.slots {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestAGuardThatIsSilentMakesItsNodeNoPlace(t *testing.T) {
	w := newWorld()
	w.sees()
	fits := func(after time.Duration) bool { w.clock.Step(after); return w.place().Fits }
	if !fits(fresh-1) || fits(1) {
		t.Error("a lease does not last as long as it should")
	}
	w.observeLease(w.lease) // a resync
	if fits(0) {
		t.Error("a resync passes for a renewal")
	}
	w.lease = w.lease.DeepCopy()
	w.lease.Spec.RenewTime.Time = w.lease.Spec.RenewTime.Add(time.Second) // by the node's clock
	w.observeLease(w.lease)
	if !fits(0) {
		t.Error("a renewal is not seen")
	}
	w.forgetLease(w.lease)
	if fits(0) {
		t.Error("a lease that was deleted counts")
	}
}

func TestAnObjectThatIsGoneCountsNoMore(t *testing.T) {
	w := newWorld()
	w.pod.Spec.NodeSelector = map[string]string{"rack": "s"}
	w.sees()
	if w.place().Fits {
		t.Fatal("the pod does not count")
	}
	for name, gone := range map[string]struct{ forget, back func() }{
		"the pod":              {func() { w.forgetPod(w.pod) }, func() { w.observePod(w.pod) }},
		"the claim":            {func() { w.forgetClaim(w.claim) }, func() { w.observeClaim(w.claim) }},
		"the PersistentVolume": {func() { w.forgetPV(w.pv) }, func() { w.observePV(w.pv) }},
	} {
		if gone.forget(); !w.place().Fits {
			t.Errorf("%s counts when it is gone", name)
		}
		if gone.back(); w.place().Fits {
			t.Errorf("%s does not count when it is back", name)
		}
	}
	w.forgetPod(w.pod)
	handler(w.Places, w.observeCSINode, w.forgetCSINode).OnDelete(cache.DeletedFinalStateUnknown{Obj: w.csiNode})
	if w.place().Fits {
		t.Error("a CSINode that is gone counts")
	}
	w.observeCSINode(w.csiNode)
	w.forgetNode(w.node)
	if w.place().Fits {
		t.Error("a Node that is gone counts")
	}
}

func TestTheRecordThatWasReadCountsBeforeTheCacheHasIt(t *testing.T) {
	w := newWorld()
	w.sees()
	other := w.second()
	if p := w.Places.Places(other, []string{"n2"})["n2"]; p.Slots != 2 {
		t.Fatalf("got %+v", p)
	}
	if p := w.place(); p.Slots != 2 {
		t.Errorf("another volume's attachment does not count: %+v", p)
	}
	foreign := other.DeepCopy()
	foreign.Name, foreign.Spec.Driver = "pvc-00000000-0000-0000-0000-000000000003", ""
	w.observeVolume(foreign)
	if p := w.place(); p.Slots != 2 {
		t.Errorf("another driver's volume takes a slot: %+v", p)
	}
	w.forgetVolume(other)
	if p := w.place(); p.Slots != 3 {
		t.Errorf("a volume that is gone takes a slot: %+v", p)
	}
}

func TestBeforeAllObjectsWereSeenNoNodeIsAPlace(t *testing.T) {
	w := newWorld()
	w.sees()
	synced := false
	w.synced = append(w.synced, func() bool { return synced })
	if w.place() != (oversight.Place{}) {
		t.Error("a node is a place")
	}
	if synced = true; !w.place().Fits {
		t.Error("no node is a place")
	}
}

func TestRoomIsMadeWhereAPodWaits(t *testing.T) {
	for node, want := range map[string]bool{"n2": true, "n1": false} {
		w := newWorld()
		w.pod.Spec.NodeName = node
		if w.sees(); w.place().MakesRoom != want {
			t.Errorf("a pod is on %s: room is made on n2 is %v", node, !want)
		}
	}
}
