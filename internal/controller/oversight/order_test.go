package oversight

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// watched notes what a client reads.
type watched struct {
	client.Client
	note func(string)
}

func (c watched) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.note(fmt.Sprintf("cache: %T", list))
	return c.Client.List(ctx, list, options...)
}

func TestAQuestionIsAskedInTheOrderThatItsAnswersNeed(t *testing.T) {
	inWorld(t, cluster(t, copies()), func(w *world) {
		var steps []string
		note := func(s string) { steps = append(steps, s) }
		r := w.controller(func(r *Reconciler) {
			r.Client = watched{r.Client, note}
			r.Live.(*reads).before = func(o runtime.Object) error {
				note(fmt.Sprintf("API server: %T", o))
				return nil
			}
		})
		w.peers.before = func() { note("replicas") }
		w.dead["n1"] = true
		w.passes(20 * time.Second)
		if _, err := r.gather(w.t.Context(), question{name: id}, false); err != nil {
			w.t.Fatal(err)
		}
		want := []string{
			"cache: *v1.PersistentVolumeList", "cache: *v1.PodList",
			"API server: *v1alpha1.Volume", "replicas", "API server: *v1.Node", "API server: *v1.Lease", "API server: *v1.Lease",
			"cache: *v1alpha1.StorageNodeList",
		}
		if diff := cmp.Diff(want, steps); diff != "" {
			t.Error(diff)
		}
	})
}

// goesOn makes n1 the owner of a later epoch, in a later boot.
func (w *world) goesOn() {
	e3 := lineage.Epoch{Number: 3, ID: "three"}
	w.becomes(func(v *ownership.Volume) {
		from := lineage.Point{}
		if v.Kind.Traits().Data {
			from = first
		}
		v.Epoch, v.Primary, v.Clean = e3, ownership.Primary{Node: "n1", Boot: "boot-2", Phase: ownership.Active}, false
		v.Lineage = v.Lineage.Extend(lineage.Branch{Epoch: e3, From: from})
	})
}

// atRecord calls f once, right before the record is read, or right after it.
func atRecord(r *Reconciler, after bool, f func()) {
	due, done := false, false
	r.Live.(*reads).before = func(o runtime.Object) error {
		_, is := o.(*v1alpha1.Volume)
		if !done && (is && !after || due && !is) {
			done = true
			f()
		}
		due = due || is
		return nil
	}
}

// TestNoProofIsOlderThanTheRecord lets the world change right before the record is read, after the
// controller's cache has seen a reason to look.
func TestNoProofIsOlderThanTheRecord(t *testing.T) {
	for name, test := range map[string]struct {
		volume *ownership.Volume
		before func(w *world)
		change func(w *world)
	}{
		"a taint of a node that has come back": {
			volume: shared(),
			before: func(w *world) { edits(w, node("n1"), tainted) },
			change: func(w *world) {
				edits(w, node("n1"), func(n *corev1.Node) { n.Spec.Taints = nil })
				w.goesOn()
			},
		},
		"a power record of a node that has come back": {
			volume: shared(),
			before: func(w *world) { edits(w, node("n1"), switchedOff("machine-of-n1", boot)) },
			change: func(w *world) { w.goesOn() },
		},
		"the lapsed lease of a node that has renewed, when the watch is late": {
			volume: copies(),
			before: func(w *world) {
				w.dead["n1"] = true
				w.passes(50 * time.Second)
				w.questions()
				w.passes(20 * time.Second)
			},
			change: func(w *world) { w.late(guardLease("n1", w.storage, time.Duration(time.Now().UnixNano()))) },
		},
		"the lapsed lease of a node whose kubelet has renewed": {
			volume: copies(),
			before: func(w *world) {
				w.dead["n1"] = true
				w.passes(50 * time.Second)
				w.questions()
				w.passes(20 * time.Second)
			},
			change: func(w *world) { w.leases.put(renewed(corev1.NamespaceNodeLease, "n1", time.Now())) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, test.volume), func(w *world) {
				r := w.controller()
				w.passes(20 * time.Second)
				test.before(w)
				w.peers.holds("n2", "n3")
				w.server.Hold(&corev1.Node{}) // the cache still shows the reason
				atRecord(r, false, func() { test.change(w) })
				if _, _, err := r.step(w.t.Context(), question{name: id}); err != nil {
					w.t.Fatal(err)
				}
				if w.phase() != v1alpha1.PrimaryActive {
					t.Errorf("the primary is %s", w.phase())
				}
			})
		})
	}
}

// questions lets the controllers look at the node's kubelet, while no copy answers.
func (w *world) questions() {
	for _, r := range w.controllers {
		w.oversees(r)
	}
}

// late stores a Lease that no watch brings.
func (w *world) late(o *coordinationv1.Lease) {
	w.leases.mu.Lock()
	defer w.leases.mu.Unlock()
	o.ResourceVersion = "late"
	w.leases.stored[o.Name] = o
}

func TestTheSameLeaseProvesItIfNothingHasChanged(t *testing.T) {
	inWorld(t, cluster(t, copies()), func(w *world) {
		r := w.controller()
		w.passes(20 * time.Second)
		w.dead["n1"] = true
		w.passes(50 * time.Second)
		w.questions()
		w.passes(20 * time.Second)
		w.peers.holds("n2", "n3")
		w.oversees(r)
		if w.phase() != v1alpha1.PrimaryFenced {
			t.Errorf("the primary is %s", w.phase())
		}
	})
}

// TestAPodWithALiveMountIsNeverEnded lets the fenced node take over and start a pod right before the record
// is read, and right after it.
func TestAPodWithALiveMountIsNeverEnded(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after the record: %v", after), func(t *testing.T) {
			inWorld(t, cluster(t, shared(phase(ownership.Fenced)), pod("old", "n2"), pod("new", "n1", pending)), func(w *world) {
				r := w.controller()
				atRecord(r, after, func() {
					w.goesOn()
					edits(w, pod("new", "n1"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
				})
				w.oversees(r)
				if got := w.pods(); !slices.Contains(got, "new") {
					t.Errorf("pods are left: %v", got)
				}
			})
		})
	}
}

// TestAPodThatBeginsWhileItIsJudgedIsNotEnded lets the fenced node take over and begin its pod between the decision to
// end the pod and its end.
func TestAPodThatBeginsWhileItIsJudgedIsNotEnded(t *testing.T) {
	inWorld(t, cluster(t, shared(phase(ownership.Fenced)), pod("db", "n1", pending)), func(w *world) {
		r := w.controller()
		w.dead["n1"] = true
		edits(w, node("n1"), tainted)
		judged := 0
		w.server.Before = func(wr lagging.Write) error {
			if wr.Verb == "delete" {
				judged++
				w.goesOn()
				edits(w, pod("db", "n1"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
			}
			return nil
		}
		w.oversees(r)
		if got := w.pods(); judged == 0 || !slices.Contains(got, "db") {
			t.Errorf("%d pods were judged, and %v are left", judged, got)
		}
	})
}

func TestAPodThatWaitsOnASilentNodeIsEndedAfterAFence(t *testing.T) {
	inWorld(t, cluster(t, shared(phase(ownership.Fenced)), pod("db", "n1", pending)), func(w *world) {
		r := w.controller()
		w.dead["n1"] = true
		w.passes(time.Minute)
		w.oversees(r)
		if got := w.pods(); len(got) > 0 {
			t.Errorf("pods are left: %v", got)
		}
	})
}

// The kubelet of a node that is back starts the pod in the next epoch.
func TestAPodThatWaitsOnANodeThatIsBackIsNotEnded(t *testing.T) {
	inWorld(t, cluster(t, shared(phase(ownership.Fenced)), pod("db", "n1", pending)), func(w *world) {
		w.oversees(w.controller())
		if got := w.pods(); !slices.Contains(got, "db") {
			t.Errorf("pods are left: %v", got)
		}
	})
}

// The node that is fenced by the record may write in a later epoch, which a backup has forgotten.
func TestAPodOnANodeThatDoesNotAnswerIsEndedIfThatStaysSo(t *testing.T) {
	inWorld(t, cluster(t, shared(phase(ownership.Fenced)), pod("db", "n1")), func(w *world) {
		r := w.controller()
		w.oversees(r)
		w.passes(strandedFor - time.Second)
		w.oversees(r)
		if got := w.pods(); !slices.Equal(got, []string{"db"}) {
			t.Errorf("pods are left: %v", got)
		}
		w.passes(2 * time.Second)
		w.oversees(r)
		if got := w.pods(); len(got) > 0 {
			t.Errorf("pods are left: %v", got)
		}
	})
}

// TestARecordFromABackupEndsNoPod: the record says that n1 owns the second epoch, and n2 has opened the third.
func TestARecordFromABackupEndsNoPod(t *testing.T) {
	inWorld(t, cluster(t, shared(), pod("old", "n1"), pod("new", "n2")), func(w *world) {
		r := w.controller()
		e3 := lineage.Epoch{Number: e2.Number + 1, ID: "third"}
		w.answers("n1")
		w.peers.answers = append(w.peers.answers, ownership.Peer{Node: "n2", Copy: ownership.Copy{Opened: e3, Promise: ownership.Promise{
			Epoch: e3, Primary: "n2", Boot: boot, Lineage: lineage.Lineage{{Epoch: e1}, {Epoch: e2}, {Epoch: e3}},
		}}})
		w.oversees(r)
		if got := w.pods(); !slices.Equal(got, []string{"new"}) {
			t.Errorf("pods are left: %v", got)
		}
	})
}

func TestAPodOfAClaimThatWasMadeAnewIsNotEnded(t *testing.T) {
	inWorld(t, cluster(t, shared(phase(ownership.Fenced)), pod("db", "n1")), func(w *world) {
		r := w.controller()
		w.server.Hold(&corev1.PersistentVolumeClaim{})
		if err := w.server.Others().Delete(w.t.Context(), claim()); err != nil {
			w.t.Fatal(err)
		}
		anew := claim()
		anew.UID = "another"
		if err := w.server.Others().Create(w.t.Context(), anew); err != nil {
			w.t.Fatal(err)
		}
		w.oversees(r)
		if diff := cmp.Diff([]string{"db"}, w.pods()); diff != "" {
			t.Error(diff)
		}
	})
}

// The claim of a pod's own volume belongs to the pod only as long as its owner reference says so.
func TestAPodToWhichItsOwnClaimBelongsNoMoreIsNotEnded(t *testing.T) {
	for _, belongs := range []bool{true, false} {
		objects := cluster(t, shared(phase(ownership.Fenced)), pod("db", "n1", func(p *corev1.Pod) {
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
		}))
		own, pv := objects[1].(*corev1.PersistentVolumeClaim), objects[2].(*corev1.PersistentVolume)
		own.Name, own.OwnerReferences = "db-d", []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "db", UID: "uid-of-db"}}
		pv.Spec.ClaimRef.Name = own.Name
		inWorld(t, objects, func(w *world) {
			r := w.controller()
			w.answers("n1")
			w.server.Hold(&corev1.PersistentVolumeClaim{})
			if !belongs {
				edits(w, own.DeepCopy(), func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = nil })
			}
			w.oversees(r)
			if got := w.pods(); (len(got) == 0) != belongs {
				t.Errorf("belongs %v: %v are left", belongs, got)
			}
		})
	}
}

func TestAnAttachmentThatTheCacheDoesNotShowAsWantedStays(t *testing.T) {
	for name, wanted := range map[string]bool{"a pod wants it": true, "no pod wants it": false} {
		t.Run(name, func(t *testing.T) {
			past := func(v *ownership.Volume) { v.ExpireAt = time.Unix(1, 0).UTC() }
			inWorld(t, cluster(t, shared(phase(ownership.Released), past)), func(w *world) {
				r := w.controller()
				w.server.Hold(&corev1.Pod{})
				if wanted {
					if err := w.server.Others().Create(w.t.Context(), pod("db", "n2", pending)); err != nil {
						w.t.Fatal(err)
					}
				}
				w.oversees(r)
				e := w.volume().Status.Ownership.Replicas[1]
				if goes := e.State == v1alpha1.OwnedRemoving; goes == wanted {
					t.Errorf("the attachment of n2 is %s", e.State)
				}
			})
		})
	}
}

func TestOfTwoWritersTheSlowerOneAsksAgain(t *testing.T) {
	inWorld(t, cluster(t, shared(), pod("db", "n1")), func(w *world) {
		r := w.controller()
		edits(w, node("n1"), tainted)
		faster := true
		w.server.Before = func(wr lagging.Write) error {
			if faster && wr.Verb == "update status" {
				faster = false
				edits(w, node("n1"), func(n *corev1.Node) { n.Spec.Taints = nil })
				w.goesOn() // n1 has come back, and was faster
			}
			return nil
		}
		w.oversees(r)
		if w.phase() != v1alpha1.PrimaryActive || !slices.Contains(w.pods(), "db") {
			t.Errorf("the primary is %s, and pods are left: %v", w.phase(), w.pods())
		}
	})
}
