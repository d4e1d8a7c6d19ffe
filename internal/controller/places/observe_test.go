package places

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/attach"
	"berth.dev/berth/internal/driver"
)

// cached makes informers of a cache.
func cached(t *testing.T) *informertest.FakeInformers {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return &informertest.FakeInformers{Scheme: scheme}
}

// objects are all that the Places of the world see.
func (w *world) objects() []client.Object {
	return []client.Object{w.node, w.csiNode, w.lease, w.volume, w.claim, w.pv, w.pod}
}

func TestPlacesHearOfEachKindOfObject(t *testing.T) {
	w, from := newWorld(), cached(t)
	w.pod.Spec.NodeSelector = map[string]string{"rack": "s"}
	if err := w.Listen(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	informer := func(o client.Object) *controllertest.FakeInformer {
		i, err := from.FakeInformerFor(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	for _, o := range w.objects() {
		informer(o).Add(o)
	}
	if p := w.place(); p.Fits || p.Slots != 3 {
		t.Fatalf("the pod asks for another rack, and the place is %+v", p)
	}
	moved := w.node.DeepCopy()
	moved.Labels["rack"] = "s"
	informer(w.node).Update(w.node, moved)
	if p := w.place(); !p.Fits {
		t.Errorf("the node is in that rack now, and the place is %+v", p)
	}
	informer(w.csiNode).Delete(w.csiNode)
	if p := w.place(); p.Fits {
		t.Errorf("the driver is gone, and the place is %+v", p)
	}
}

func TestBeforeEachInformerHasSyncedNoNodeIsAPlace(t *testing.T) {
	for _, late := range newWorld().objects() {
		w, from := newWorld(), cached(t)
		kinds, _, err := from.Scheme.ObjectKinds(late)
		if err != nil {
			t.Fatal(err)
		}
		informer := controllertest.NewFakeInformer()
		from.InformersByGVK = map[schema.GroupVersionKind]toolscache.SharedIndexInformer{kinds[0]: informer}
		if err := w.Listen(t.Context(), from); err != nil {
			t.Fatal(err)
		}
		w.sees()
		if w.place().Fits {
			t.Errorf("a node is a place before each %s was seen", kinds[0].Kind)
		}
		if informer.Synced(); !w.place().Fits {
			t.Errorf("no node is a place once each %s was seen", kinds[0].Kind)
		}
	}
}

// stopped is an informer that takes no handler any more.
type stopped struct{ toolscache.SharedIndexInformer }

var errStopped = errors.New("the informer has stopped")

func (stopped) AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return nil, errStopped
}

func TestPlacesThatCannotListenSaySo(t *testing.T) {
	broken := cached(t)
	broken.Error = errors.New("the cache does not know the kind")
	if err := newWorld().Listen(t.Context(), broken); !errors.Is(err, broken.Error) {
		t.Errorf("got %v", err)
	}
	deaf := cached(t)
	deaf.InformersByGVK = map[schema.GroupVersionKind]toolscache.SharedIndexInformer{corev1.SchemeGroupVersion.WithKind("Pod"): stopped{}}
	if err := newWorld().Listen(t.Context(), deaf); !errors.Is(err, errStopped) {
		t.Errorf("got %v", err)
	}
}

func TestAnObjectOfAnotherKindIsIgnored(t *testing.T) {
	w := newWorld()
	w.sees()
	h := handler(w.Places, w.observeNode, w.forgetNode)
	h.OnDelete(w.csiNode)
	h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "n2"})
	if !w.place().Fits {
		t.Error("the Node counts as gone")
	}
}

func TestAPodUsesTheClaimOfAGenericVolume(t *testing.T) {
	w := newWorld()
	w.claim.Name, w.pv.Spec.ClaimRef.Name = "db-scratch", "db-scratch"
	w.pod.Spec.NodeSelector = map[string]string{"rack": "s"}
	w.pod.Spec.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
	}
	w.sees()
	if w.place().Fits {
		t.Error("the pod does not count")
	}
	w.pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}}
	w.observePod(w.pod)
	if !w.place().Fits {
		t.Error("the pod counts, and uses no claim")
	}
}

func TestANodeThatLosesTheDriverIsNoPlace(t *testing.T) {
	w := newWorld()
	w.sees()
	w.csiNode.Spec.Drivers = w.csiNode.Spec.Drivers[:1]
	w.observeCSINode(w.csiNode)
	if p := w.place(); p.Fits || p.Slots != attach.DefaultSlots {
		t.Errorf("got %+v", p)
	}
}

func TestAPersistentVolumeThatIsReleasedStandsForNoClaim(t *testing.T) {
	w := newWorld()
	w.pod.Spec.NodeSelector = map[string]string{"rack": "s"}
	w.sees()
	released := w.pv.DeepCopy()
	released.Spec.ClaimRef = nil // as an administrator releases it
	w.observePV(released)
	if !w.place().Fits {
		t.Error("the pod of the claim counts")
	}
}

// TestWhatTakesASlot: a second Volume has an entry on n2 in its record.
func TestWhatTakesASlot(t *testing.T) {
	for name, test := range map[string]struct {
		change func(v *v1alpha1.Volume)
		slots  int
	}{
		"a shared disk":                          {func(*v1alpha1.Volume) {}, 2},
		"one of which no record is written yet":  {func(v *v1alpha1.Volume) { v.Status.Ownership = nil }, 3},
		"one whose record cannot be read":        {func(v *v1alpha1.Volume) { v.Status.Ownership.Replicas[0].State = "Odd" }, 3},
		"a volume of copies":                     {copies, 3},
		"a volume of copies without a record":    {func(v *v1alpha1.Volume) { copies(v); v.Status.Ownership = nil }, 3},
		"a volume of another driver of the node": {func(v *v1alpha1.Volume) { v.Spec.Driver = driver.Local().Name }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.sees()
			v := w.second()
			test.change(v)
			w.observeVolume(v)
			if p := w.place(); p.Slots != test.slots {
				t.Errorf("got %+v, want %d slots", p, test.slots)
			}
		})
	}
}

func copies(v *v1alpha1.Volume) {
	v.Spec.Replication = v1alpha1.Replication{Factor: 2, Kind: v1alpha1.ReplicationSnapshots}
}

// second is another shared disk, which is attached to n2 and has no owner.
func (w *world) second() *v1alpha1.Volume {
	e := v1alpha1.Epoch{Number: 1, ID: "one"}
	v := w.volume.DeepCopy()
	v.Name = "pvc-00000000-0000-0000-0000-000000000002"
	v.Status.Ownership = &v1alpha1.Ownership{Epoch: e, Lineage: []v1alpha1.Branch{{Epoch: e}}, Primary: v1alpha1.Primary{Phase: v1alpha1.PrimaryReleased},
		Replicas: []v1alpha1.OwnedReplica{{Node: "n2", State: v1alpha1.OwnedReserved}}}
	return v
}

func TestARecordThatCannotBeReadChangesNothing(t *testing.T) {
	w := newWorld()
	w.sees()
	v := w.second()
	w.observeVolume(v)
	v.Status.Ownership.Replicas = []v1alpha1.OwnedReplica{{Node: "n2", State: "Odd"}}
	w.observeVolume(v)
	if p := w.place(); p.Slots != 2 {
		t.Errorf("got %+v", p)
	}
}

// TestAVolumeWhoseRecordIsNotWrittenYetIsToBeDeleted: its pod waits for no attachment any more.
func TestAVolumeWhoseRecordIsNotWrittenYetIsToBeDeleted(t *testing.T) {
	w := newWorld()
	w.pod.Spec.NodeName = "n2"
	w.sees()
	second := w.second()
	slots := func() int { return w.Places.Places(second, []string{"n2"})["n2"].Slots }
	if got := slots(); got != 1 {
		t.Fatalf("%d slots are left of 3, and a pod waits", got)
	}
	w.volume.DeletionTimestamp = &metav1.Time{Time: w.clock.Now()}
	w.observeVolume(w.volume)
	if got := slots(); got != 2 {
		t.Errorf("%d slots are left of 3, and no pod waits", got)
	}
}
