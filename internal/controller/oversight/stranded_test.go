package oversight

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/ownership"
)

func booted(boot string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.NodeInfo.BootID = boot }
}

// running has all Nodes run in the boot of the record.
func running(objects []client.Object) []client.Object {
	for _, o := range objects {
		if n, is := o.(*corev1.Node); is {
			booted(boot)(n)
		}
	}
	return objects
}

func completed(p *corev1.Pod) {
	p.Status.Phase = corev1.PodSucceeded
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
}

func TestWhichPodsKeepADeadMountOnANodeThatReleased(t *testing.T) {
	for name, test := range map[string]struct {
		phase  ownership.Phase
		pod    *corev1.Pod
		boot   string
		strand bool
	}{
		"one that ran":                              {ownership.Released, pod("p", "n1"), boot, true},
		"one that waits":                            {ownership.Released, pod("p", "n1", pending), boot, false},
		"one that its kubelet ends":                 {ownership.Released, pod("p", "n1", leaving), boot, false},
		"one that has completed":                    {ownership.Released, pod("p", "n1", completed), boot, false},
		"one whose kubelet stages anew, after boot": {ownership.Released, pod("p", "n1"), "boot-2", false},
		"one whose boot no record names":            {ownership.Released, pod("p", "n1"), "", false},
		"one on another node":                       {ownership.Released, pod("p", "n2"), boot, false},
		"one of the owner":                          {ownership.Active, pod("p", "n1"), boot, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := shared(phase(test.phase))
			if test.boot == "" {
				v.Primary.Boot = ""
			}
			got := stranded(v, []corev1.Pod{*test.pod}, nil, func(string) string { return test.boot })
			if len(got) > 0 != test.strand {
				t.Errorf("it is stranded: %v", len(got) > 0)
			}
		})
	}
}

// A node that was cut off has stopped its writers and released the volume. Nothing else ends its pod.
func TestAPodWithADeadMountIsEndedAfterItsNodeHasReleasedTheVolume(t *testing.T) {
	objects := running(cluster(t, shared(phase(ownership.Released)), pod("db", "n1"), pod("waits", "n1", pending)))
	inWorld(t, objects, func(w *world) {
		r := w.controller()
		w.oversees(r)
		w.passes(strandedFor - time.Second)
		w.oversees(r)
		if diff := cmp.Diff([]string{"db", "waits"}, w.pods()); diff != "" {
			t.Error("too early: it may have completed: " + diff)
		}
		w.passes(2 * time.Second)
		w.oversees(r)
		if diff := cmp.Diff([]string{"waits"}, w.pods()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAPodThatHasCompletedMeanwhileIsNotEnded(t *testing.T) {
	objects := running(cluster(t, shared(phase(ownership.Released)), pod("job", "n1")))
	inWorld(t, objects, func(w *world) {
		r := w.controller()
		w.oversees(r)
		w.passes(strandedFor)
		w.server.Hold(&corev1.Pod{})
		p := pod("job", "n1")
		if err := w.server.Others().Get(w.t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			t.Fatal(err)
		}
		p.Status.Phase = corev1.PodSucceeded
		if err := w.server.Others().Status().Update(w.t.Context(), p); err != nil {
			t.Fatal(err)
		}
		w.oversees(r)
		if diff := cmp.Diff([]string{"job"}, w.pods()); diff != "" {
			t.Error(diff)
		}
	})
}

// A filesystem that shut itself down, or a disk that refuses the node: the node gives the epoch up, and cannot release
// the volume while the pod has it.
func TestAPodWhoseNodeHasGivenItsEpochUpIsEnded(t *testing.T) {
	objects := running(cluster(t, shared(), pod("db", "n1"), pod("waits", "n1", pending), pod("leaves", "n1", leaving)))
	inWorld(t, objects, func(w *world) {
		r := w.controller()
		w.oversees(r)
		over := ownership.Copy{Promise: ownership.Promise{Epoch: e2, Primary: "n1", Boot: boot}, Opened: e2, Closed: e2}
		w.peers.answers = []ownership.Peer{{Node: "n1", Copy: over}}
		w.becomes(func(v *ownership.Volume) { v.Replicas[0].State = ownership.Syncing })
		w.oversees(r)
		w.passes(strandedFor - time.Second)
		w.oversees(r)
		if diff := cmp.Diff([]string{"db", "leaves", "waits"}, w.pods()); diff != "" {
			t.Error("too early: the volume may be about to be released: " + diff)
		}
		w.passes(2 * time.Second)
		w.oversees(r)
		if diff := cmp.Diff([]string{"leaves", "waits"}, w.pods()); diff != "" {
			t.Error(diff)
		}
		if w.phase() != "Active" {
			t.Errorf("the epoch is %s: only the node itself releases it", w.phase())
		}
	})
}

func TestAPodWhoseNodeDoesNotAnswerThatItGaveItsEpochUpStays(t *testing.T) {
	objects := running(cluster(t, shared(func(v *ownership.Volume) { v.Replicas[0].State = ownership.Syncing }), pod("db", "n1")))
	inWorld(t, objects, func(w *world) {
		r := w.controller()
		for range 3 {
			w.oversees(r)
			w.passes(strandedFor)
		}
		if diff := cmp.Diff([]string{"db"}, w.pods()); diff != "" {
			t.Error(diff)
		}
	})
}
