package oversight

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/apimachinery/pkg/api/meta"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ownership"
)

func TestATaintFencesThePrimaryAndEndsItsPodsAlone(t *testing.T) {
	other := func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "other" }
	inWorld(t, cluster(t, shared(), pod("db", "n1"), pod("waits", "n1", pending), pod("stuck", "n1", leaving), pod("stranger", "n1", other), pod("next", "n2", pending)), func(w *world) {
		r := w.controller()
		w.dead["n1"] = true
		w.oversees(r)
		if w.phase() != v1alpha1.PrimaryActive {
			t.Error("it was fenced without a reason")
		}
		edits(w, node("n1"), tainted)
		w.oversees(r)
		if w.phase() != v1alpha1.PrimaryFenced {
			t.Errorf("the primary is %s", w.phase())
		}
		// The one that has a finalizer stays until that is gone.
		if diff := cmp.Diff([]string{"next", "stranger", "stuck"}, w.pods()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAPowerRecordFencesTheBootThatItIsAbout(t *testing.T) {
	for name, test := range map[string]struct {
		boot string
		want v1alpha1.PrimaryPhase
	}{
		"the boot that owns the epoch": {boot, v1alpha1.PrimaryFenced},
		"an earlier boot":              {"boot-0", v1alpha1.PrimaryActive},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, shared()), func(w *world) {
				r := w.controller()
				w.passes(ownership.WatchFirst)
				edits(w, node("n1"), switchedOff("machine-of-n1", test.boot))
				w.oversees(r)
				if w.phase() != test.want {
					t.Errorf("the primary is %s", w.phase())
				}
			})
		})
	}
}

// lapses lets n1 fall silent, and returns after how long it was fenced, or zero if it never was.
func (w *world) lapses(r *Reconciler, silence time.Duration) time.Duration {
	w.dead["n1"] = true
	for after := time.Second; after <= silence; after += time.Second {
		if after%(5*time.Second) == 0 {
			w.passes(time.Second)
		} else {
			w.waits(time.Second)
		}
		w.oversees(r)
		if w.phase() == v1alpha1.PrimaryFenced {
			return after
		}
	}
	return 0
}

func TestTheLapsedLeaseOfAGuardFencesACopysOwner(t *testing.T) {
	for name, test := range map[string]struct {
		change func(w *world)
		min    time.Duration // zero: never
	}{
		"its kubelet is silent, too": {func(*world) {}, 30 * time.Second},
		"its kubelet renews":         {func(w *world) { w.kubelets = true }, 0},
		"no other copy answers":      {func(w *world) { w.peers.answers = nil }, 0},
		"a second node is silent":    {func(w *world) { w.dead["n2"] = true }, 0},
		"its lease names other nodes than there are": {func(w *world) {
			if err := w.server.Others().Delete(w.t.Context(), &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n3"}}); err != nil {
				w.t.Fatal(err)
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, copies(), pod("db", "n1")), func(w *world) {
				w.peers.holds("n2", "n3")
				r := w.controller()
				w.passes(20 * time.Second)
				test.change(w)
				after := w.lapses(r, 90*time.Second)
				if test.min == 0 != (after == 0) || after < test.min || after > test.min+10*time.Second {
					t.Errorf("it was fenced after %s, want at least %s", after, test.min)
				}
				if fenced := after > 0; fenced == slices.Contains(w.pods(), "db") {
					t.Errorf("pods are left: %v", w.pods())
				}
			})
		})
	}
}

func TestTheBrakeHoldsWhatIsNoOrder(t *testing.T) {
	for name, test := range map[string]struct {
		watched time.Duration
		dead    []string
		says    func(*corev1.Node)
		want    v1alpha1.PrimaryPhase
	}{
		"a record of power": {time.Minute, []string{"n1"}, switchedOff("machine-of-n1", boot), v1alpha1.PrimaryFenced},
		"a record of power while two of three nodes look lost":   {time.Minute, []string{"n1", "n2"}, switchedOff("machine-of-n1", boot), v1alpha1.PrimaryActive},
		"a record of power for a controller that has just begun": {9 * time.Second, []string{"n1"}, switchedOff("machine-of-n1", boot), v1alpha1.PrimaryActive},
		"a taint while two of three nodes look lost":             {time.Minute, []string{"n1", "n2"}, tainted, v1alpha1.PrimaryFenced},
		"a taint for a controller that has just begun":           {0, []string{"n1"}, tainted, v1alpha1.PrimaryFenced},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, shared()), func(w *world) {
				r := w.controller()
				for _, n := range test.dead {
					w.dead[n] = true
				}
				w.passes(test.watched)
				edits(w, node("n1"), test.says)
				w.oversees(r)
				if w.phase() != test.want {
					t.Errorf("the primary is %s", w.phase())
				}
			})
		})
	}
}

func TestAnOutageOfTheAPIAloneFencesNothing(t *testing.T) {
	for name, v := range map[string]*ownership.Volume{"copies": copies(), "a shared disk": shared(func(v *ownership.Volume) { v.Sharing.Persistent = true })} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, v), func(w *world) {
				w.peers.holds("n2", "n3")
				r := w.controller()
				w.passes(time.Minute)
				for _, down := range []bool{true, false} {
					w.leases.stops(down)
					for _, n := range w.storage {
						w.dead[n] = down // no renewal is stored
					}
					for range 90 {
						w.waits(time.Second)
						w.oversees(r)
					}
					w.passes(time.Minute)
				}
				if o := w.volume().Status.Ownership; o.Primary.Phase != v1alpha1.PrimaryActive || o.FenceRequest != nil {
					t.Errorf("the primary is %s, and the request %v", o.Primary.Phase, o.FenceRequest)
				}
			})
		})
	}
}

func TestAStandbyIsAskedToShutASilentWriterOut(t *testing.T) {
	inWorld(t, cluster(t, shared(func(v *ownership.Volume) { v.Sharing.Persistent = true })), func(w *world) {
		r := w.controller()
		w.passes(time.Minute)
		w.dead["n1"] = true
		w.passes(agentSilent + 5*time.Second)
		w.oversees(r)
		o := w.volume().Status.Ownership
		if o.FenceRequest == nil || o.FenceRequest.Executor != "n2" {
			w.t.Fatalf("the request is %v", o.FenceRequest)
		}
		w.becomes(func(v *ownership.Volume) { v.Replicas[1].Fenced = v.Epoch })
		w.oversees(r)
		if w.phase() != v1alpha1.PrimaryFenced {
			t.Errorf("the primary is %s", w.phase())
		}
	})
}

// waiting is the condition, as words.
func (w *world) waiting() string {
	c := meta.FindStatusCondition(w.volume().Status.Conditions, v1alpha1.ConditionWaiting)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// TestAFailoverWritesTheVolumeOnlyForItsRecord: each write takes a sync of etcd, and wakes everybody who watches.
func TestAFailoverWritesTheVolumeOnlyForItsRecord(t *testing.T) {
	for name, leads := range map[string]bool{"the controller leads": true, "another one leads": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, shared(func(v *ownership.Volume) { v.Sharing.Persistent = true })), func(w *world) {
				r := w.controller(func(r *Reconciler) { r.Leads = func() bool { return leads } })
				w.passes(time.Minute)
				w.dead["n1"] = true
				w.passes(agentSilent + 5*time.Second)
				var writes []string
				w.server.Before = func(at lagging.Write) error {
					if _, is := at.Object.(*v1alpha1.Volume); is {
						writes = append(writes, at.Verb)
					}
					return nil
				}
				w.oversees(r)
				if got, want := w.waiting(), "True FenceRequested: node n2 shall shut the writer out at the device; if that takes more than a minute, the log of its agent says why"; got != want {
					t.Errorf("the volume says %q", got)
				}
				v := w.volume()
				if !meta.IsStatusConditionTrue(v.Status.Conditions, v1alpha1.ConditionReplicaAway) || len(writes) != 1 {
					t.Errorf("written by %q, with the conditions %v", writes, v.Status.Conditions)
				}
				w.server.Before = nil
				w.becomes(func(v *ownership.Volume) { v.Replicas[1].Fenced = v.Epoch })
				w.oversees(r)
				if got := w.waiting(); w.phase() != v1alpha1.PrimaryFenced || got != "False NothingWaits: " {
					t.Errorf("the primary is %s, and the volume says %q", w.phase(), got)
				}
			})
		})
	}
}

func TestTheVolumeSaysWhatItsFailoverWaitsFor(t *testing.T) {
	const noProof = "True NoProof: node n1 looks dead, but nothing proves that it cannot write; power it off or taint it out-of-service"
	for name, leads := range map[string]bool{"the controller leads": true, "another one leads": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, shared()), func(w *world) {
				r := w.controller(func(r *Reconciler) { r.Leads = func() bool { return leads } })
				w.oversees(r)
				w.dead["n1"] = true
				w.passes(time.Minute)
				for range 3 {
					w.oversees(r)
				}
				if got := w.waiting(); leads != (got == noProof) {
					t.Errorf("the volume says %q", got)
				}
				edits(w, node("n1"), tainted)
				w.oversees(r)
				if got := w.waiting(); leads != (got == "False NothingWaits: ") {
					t.Errorf("after the fence the volume says %q", got)
				}
				told := map[string]int{}
				var list eventsv1.EventList
				if err := w.server.Others().List(w.t.Context(), &list); err != nil {
					w.t.Fatal(err)
				}
				for _, e := range list.Items {
					told[e.Reason+" "+e.Regarding.Kind]++
				}
				want := map[string]int{"WriterFenced Volume": 1, "WriterFenced PersistentVolumeClaim": 1}
				if leads {
					want["NoProof Volume"], want["NoProof PersistentVolumeClaim"] = 1, 1
				}
				if diff := cmp.Diff(want, told); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestTheVolumeNamesTheNodesThatDoNotAnswer(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		r, said := w.controller(), func() string {
			c := meta.FindStatusCondition(w.volume().Status.Conditions, v1alpha1.ConditionReplicaAway)
			if c == nil {
				return ""
			}
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
		w.passes(time.Minute)
		w.oversees(r)
		if got := said(); got != "" {
			t.Errorf("while all nodes answer the volume says %q", got)
		}
		w.dead["n2"] = true
		w.passes(time.Minute)
		w.oversees(r)
		if got := said(); got != "True NodeAway: node n2 does not answer; its replica was Ready" {
			t.Errorf("without the standby's node the volume says %q", got)
		}
		begins := w.controller() // it has not watched for long
		w.oversees(begins)
		if got := said(); !strings.HasPrefix(got, "True") {
			t.Errorf("a controller that has just begun says %q", got)
		}
		delete(w.dead, "n2")
		w.passes(time.Minute)
		w.oversees(r)
		if got := said(); got != "False NodesAnswer: " {
			t.Errorf("with all nodes back the volume says %q", got)
		}
	})
}

func TestAVolumeWithOneCopyCostsNoRequest(t *testing.T) {
	one := object(t, copies())
	one.Spec.Replication, one.Status.Ownership, one.Spec.Driver = v1alpha1.Replication{Factor: 1}, nil, ""
	objects := cluster(t, copies(), pod("db", "n1"))
	objects[0] = one
	inWorld(t, objects, func(w *world) {
		live := &reads{Reader: w.server.Live(), leases: w.leases}
		r := w.controller(func(r *Reconciler) {
			r.Live, r.Client = driver.Local().Live(live), driver.Local().View(w.server.Client())
		})
		writes := 0
		w.server.Before = func(lagging.Write) error { writes++; return nil }
		w.dead["n1"] = true
		edits(w, node("n1"), tainted)
		w.passes(2 * time.Minute)
		w.oversees(r)
		if live.count.Load() != 0 || writes != 0 {
			t.Errorf("%d reads and %d writes", live.count.Load(), writes)
		}
		if requests := r.volumesOn(w.t.Context(), map[string]bool{"n1": true}); len(requests) != 0 {
			t.Errorf("it is looked at: %v", requests)
		}
	})
}

func TestTheVolumesOfANodeThatFallsSilentAreLookedAt(t *testing.T) {
	inWorld(t, cluster(t, copies()), func(w *world) {
		r := w.controller()
		w.passes(20 * time.Second)
		if nodes := r.Contact.troubled(r.saidOfAll(w.t.Context())); len(nodes) != 0 {
			t.Errorf("troubled are %v", nodes)
		}
		w.dead["n1"] = true
		for i, want := range []bool{false, false, true, false, true, false} { // silent after 12 s, suspected after 25 s
			w.passes(5 * time.Second)
			if got := r.Contact.troubled(r.saidOfAll(w.t.Context()))["n1"]; got != want {
				t.Errorf("after %d s: %v", 5*(i+1), got)
			}
		}
		if diff := cmp.Diff(1, len(r.volumesOn(w.t.Context(), map[string]bool{"n1": true}))); diff != "" {
			t.Error(diff)
		}
		w.dead["n1"] = false
		w.passes(5 * time.Second)
		if !r.Contact.troubled(r.saidOfAll(w.t.Context()))["n1"] {
			t.Error("it is not told that the node is back")
		}
	})
}

func TestTheVolumesOfANodeThatOnlyOthersSayIsLostAreLookedAt(t *testing.T) {
	inWorld(t, cluster(t, copies()), func(w *world) {
		r := w.controller()
		w.passes(20 * time.Second)
		said := r.saidOfAll(w.t.Context())
		said["n9"] = []ownership.Witness{{Name: "n2"}, {Name: "n3"}, {Name: "n4"}} // no lease of its guard is there
		if diff := cmp.Diff(map[string]bool{"n9": true}, r.Contact.troubled(said)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAPodLeadsToItsVolume(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		r := w.controller()
		for name, test := range map[string]struct {
			pod  client.Object
			want int
		}{
			"a pod on a node":        {pod("p", "n1"), 1},
			"a pod without a node":   {pod("p", ""), 1},
			"a pod of another claim": {pod("p", "n1", func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "x" }), 0},
		} {
			if got := r.volumesOfPod(w.t.Context(), test.pod); len(got) != test.want {
				t.Errorf("%s: %v", name, got)
			}
		}
	})
}
