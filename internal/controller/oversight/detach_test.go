package oversight

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/ownership"
)

const (
	ours   = corev1.UniqueVolumeName("kubernetes.io/csi/disk.berth.dev^" + id)
	theirs = corev1.UniqueVolumeName("kubernetes.io/csi/other.example.com^" + id)
)

// attached is the VolumeAttachment of a PersistentVolume on a node.
func attached(pv, node string, edits ...func(*storagev1.VolumeAttachment)) *storagev1.VolumeAttachment {
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-" + pv + "-" + node}}
	a.Spec = storagev1.VolumeAttachmentSpec{Attacher: epochs.Name, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}}
	for _, edit := range edits {
		edit(a)
	}
	return a
}

// lists has a node's kubelet report the volumes that it uses.
func (w *world) lists(name string, volumes ...corev1.UniqueVolumeName) {
	w.t.Helper()
	n := node(name)
	if err := w.server.Others().Get(w.t.Context(), client.ObjectKeyFromObject(n), n); err != nil {
		w.t.Fatal(err)
	}
	n.Status.VolumesInUse = volumes
	if err := w.server.Others().Status().Update(w.t.Context(), n); err != nil {
		w.t.Fatal(err)
	}
}

func attaches(r *Reconciler) { r.Attacher = epochs.Name }

// listed are the volumes in use of a node.
func (w *world) listed(name string) []corev1.UniqueVolumeName {
	w.t.Helper()
	n := node(name)
	if err := w.server.Others().Get(w.t.Context(), client.ObjectKeyFromObject(n), n); err != nil {
		w.t.Fatal(err)
	}
	return n.Status.VolumesInUse
}

func TestWhichNodesDoNotSayThatTheyHaveStopped(t *testing.T) {
	away := map[string]bool{"n1": true}
	for name, test := range map[string]struct {
		phase ownership.Phase
		pods  []corev1.Pod
		away  map[string]bool
		want  []string
	}{
		"the owner's that looks lost, not fenced yet": {ownership.Active, nil, away, nil},
		"one that begins an epoch and looks lost":     {ownership.Preparing, nil, away, nil},
		"a fenced writer's that looks lost":           {ownership.Fenced, nil, away, []string{"n1"}},
		"a fenced writer's that is there":             {ownership.Fenced, nil, nil, []string{"n1"}},
		"one that has let go and looks lost":          {ownership.Released, nil, away, []string{"n1"}},
		"one that has let go and is there":            {ownership.Released, nil, nil, nil},
		"a standby's that looks lost":                 {ownership.Active, nil, map[string]bool{"n3": true, "n2": true}, []string{"n2", "n3"}},
		"a fenced writer's with a pod":                {ownership.Fenced, []corev1.Pod{*pod("db", "n1")}, away, nil},
		"a fenced writer's with a pod being deleted":  {ownership.Fenced, []corev1.Pod{*pod("db", "n1", leaving)}, away, nil},
		"a fenced writer's with a pod that has ended": {ownership.Fenced, []corev1.Pod{*pod("db", "n1", completed)}, away, []string{"n1"}},
		"a fenced writer's, with a pod elsewhere":     {ownership.Fenced, []corev1.Pod{*pod("db", "n2", pending)}, away, []string{"n1"}},
		"one out of service that is not":              {ownership.Active, nil, map[string]bool{"n2": false}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, unheard(shared(phase(test.phase)), test.pods, test.away), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAFencedNodeHoldsNoVolumeAttachmentUp: Kubernetes detaches a volume from a node whose kubelet does not list it.
func TestAFencedNodeHoldsNoVolumeAttachmentUp(t *testing.T) {
	both := []corev1.UniqueVolumeName{theirs, ours}
	for name, test := range map[string]struct {
		attached *storagev1.VolumeAttachment
		alter    func(*Reconciler)
		fenced   bool
		want     []corev1.UniqueVolumeName
	}{
		"a fenced node":                   {attached(id, "n1"), attaches, true, both[:1]},
		"a node that may write":           {attached(id, "n1"), attaches, false, both},
		"no VolumeAttachments":            {attached(id, "n1"), func(*Reconciler) {}, true, both},
		"one of another node":             {attached(id, "n2"), attaches, true, both},
		"one of another PersistentVolume": {attached("other", "n1"), attaches, true, both},
		"one of another driver": {attached(id, "n1", func(a *storagev1.VolumeAttachment) {
			a.Spec.Attacher = "other.example.com"
		}), attaches, true, both},
		"one that is being deleted": {attached(id, "n1", func(a *storagev1.VolumeAttachment) {
			a.DeletionTimestamp, a.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"test/stays"}
		}), attaches, true, both},
		"one without a PersistentVolume": {attached(id, "n1", func(a *storagev1.VolumeAttachment) {
			a.Spec.Source = storagev1.VolumeAttachmentSource{}
		}), attaches, true, both},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, shared(), pod("db", "n1"), test.attached), func(w *world) {
				w.lists("n1", both...)
				w.lists("n2", both...)
				r := w.controller(test.alter)
				w.dead["n1"] = true
				w.passes(time.Minute)
				if test.fenced {
					edits(w, node("n1"), tainted)
				}
				w.oversees(r)
				w.oversees(r) // the end of its pod brings the next question
				if diff := cmp.Diff(test.want, w.listed("n1")); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(both, w.listed("n2")); diff != "" {
					t.Errorf("another node: %s", diff)
				}
			})
		})
	}
}

func TestANodeThatChangesMeanwhileIsReadAgain(t *testing.T) {
	inWorld(t, cluster(t, shared(phase(ownership.Fenced)), attached(id, "n1")), func(w *world) {
		w.lists("n1", ours)
		r := w.controller(attaches)
		tries := 0
		w.server.Before = func(at lagging.Write) error {
			if _, is := at.Object.(*corev1.Node); is && at.Verb == "patch status" {
				if tries++; tries == 1 {
					w.lists("n1", ours, theirs)
				}
			}
			return nil
		}
		w.oversees(r)
		if diff := cmp.Diff([]corev1.UniqueVolumeName{theirs}, w.listed("n1")); diff != "" || tries != 2 {
			t.Errorf("after %d tries: %s", tries, diff)
		}
		w.oversees(r)
		if tries != 2 {
			t.Error("a list without the volume is written again")
		}
	})
}
