package oversight

import (
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

func TestTheNodesOfTheRecordAreAskedAndAllIfNoneTakesTheVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		record *ownership.Volume
		pods   []client.Object
		want   []string
	}{
		"a node owns the volume":                             {shared(), nil, []string{"n1", "n2"}},
		"no node ever had it":                                {unused(), nil, nil},
		"the owner has no attachment now":                    {shared(func(v *ownership.Volume) { v.Replicas = v.Replicas[1:] }), nil, []string{"n1", "n2"}},
		"a pod waits for long, and no node takes the volume": {shared(phase(ownership.Released)), []client.Object{pod("db", "n2", pending)}, []string{"n1", "n2", "n3"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, tc.record, tc.pods...), func(w *world) {
				w.asked(w.controller())
				if !slices.Equal(w.peers.asked, tc.want) {
					t.Errorf("%q are asked", w.peers.asked)
				}
			})
		})
	}
}

// Nodes want what is attached for them. A copy is where it is.
func TestNodesWantASharedDiskAndNoCopy(t *testing.T) {
	stranger := func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "other" }
	for name, tc := range map[string]struct {
		record *ownership.Volume
		want   []string
	}{"a shared disk": {shared(), []string{"n1"}}, "copies": {copies(), nil}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, tc.record, pod("db", "n1"), pod("stranger", "n3", stranger)), func(w *world) {
				if got := w.asked(w.controller()).facts.Wanted; !slices.Equal(got, tc.want) {
					t.Errorf("%v want it", got)
				}
			})
		})
	}
}

func TestAWishCountsAmongTheNodesThatWantADisk(t *testing.T) {
	inWorld(t, cluster(t, shared(), pod("db", "n2")), func(w *world) {
		r := w.controller()
		q, err := r.gather(w.t.Context(), question{name: id, wish: "n1"}, false)
		if err != nil || !slices.Equal(q.facts.Wanted, []string{"n1", "n2"}) {
			t.Errorf("%v want it: %v", q.facts.Wanted, err)
		}
	})
}

// One of a volume's PersistentVolumes has no claim, such as one that an administrator has just made.
func TestTheClaimOfAVolumeIsFoundAmongItsPersistentVolumes(t *testing.T) {
	last := unbound()
	last.Name = "z"
	for _, other := range []*corev1.PersistentVolume{unbound(), last} {
		inWorld(t, cluster(t, shared(), other), func(w *world) {
			if q := w.asked(w.controller()); q.claim == nil {
				t.Errorf("beside PersistentVolume %s it has no claim", other.Name)
			}
		})
	}
}

// A volume was moved to another namespace: its earlier PersistentVolume was retained, and names a claim that is gone.
func TestTheClaimThatIsThereIsTheOneThatHasTheVolume(t *testing.T) {
	for _, earlier := range []string{"a", "z"} {
		for why, ref := range map[string]*corev1.ObjectReference{
			"it is gone":       {Namespace: "elsewhere", Name: "data", UID: "gone"},
			"another is there": {Namespace: "shop", Name: "data", UID: "earlier"},
		} {
			pv := persistentVolume()
			pv.Name, pv.Spec.ClaimRef = earlier, ref
			inWorld(t, cluster(t, shared(), pv, pod("db", "n1")), func(w *world) {
				for _, live := range []bool{false, true} {
					q, err := w.controller().gather(w.t.Context(), question{name: id}, live)
					if err != nil || !slices.Equal(q.facts.Wanted, []string{"n1"}) || q.pv != persistentVolume().Name || q.claim.UID == ref.UID {
						t.Errorf("beside PersistentVolume %s, %s: %v want it, for %+v of %s: %v", earlier, why, q.facts.Wanted, q.claim, q.pv, err)
					}
				}
			})
		}
	}
}

// A list of pods costs the API server much, and a question comes each second while a primary is silent.
func TestTheAPIServerIsAskedForPodsOnlyBeforeAnAttachmentGoes(t *testing.T) {
	removing := func(v *ownership.Volume) { v.Replicas[1].State = ownership.Removing }
	deleted := cluster(t, shared(phase(ownership.Released)))
	deleted[0].(*v1alpha1.Volume).DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for name, tc := range map[string]struct {
		objects []client.Object
		fenced  bool
		asks    bool
		want    string
	}{
		"nothing is to be done":                 {cluster(t, shared(), pod("db", "n1")), false, false, "Active n1 Ready, n2 Ready"},
		"a writer is to be fenced":              {cluster(t, shared(), pod("db", "n1")), true, false, "Fenced n1 Ready, n2 Ready"},
		"the same, and an attachment is going":  {cluster(t, shared(removing), pod("db", "n1")), true, false, "Fenced n1 Ready, n2 Removing"},
		"attachments have expired":              {cluster(t, shared(phase(ownership.Released), expired)), false, true, "Released n1 Removing, n2 Removing"},
		"all go, because the volume is deleted": {deleted, false, false, "Released n1 Removing, n2 Removing"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, tc.objects, func(w *world) {
				r, asked := w.controller(), false
				w.passes(time.Minute)
				if tc.fenced {
					edits(w, node("n1"), tainted)
				}
				r.Live.(*reads).before = func(o runtime.Object) error {
					_, is := o.(*corev1.PodList)
					asked = asked || is
					return nil
				}
				w.oversees(r)
				if got := string(w.phase()) + " " + w.attachments(); asked != tc.asks || got != tc.want {
					t.Errorf("it asks: %v, and the record is %s", asked, got)
				}
			})
		})
	}
}

func TestWitnessesMakeAPrimarySilentWhoseLeasesAreFresh(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		r := w.controller(func(r *Reconciler) { r.Witnesses = w.peers })
		w.passes(time.Minute)
		if w.asked(r).evidence["n1"].silent {
			t.Error("it is silent before a witness says so")
		}
		w.peers.witnesses = map[string][]ownership.Witness{"n1": {{Name: "n2"}, {Name: "n3"}, {Name: "n4"}, {Name: "n5"}}}
		if !w.asked(r).evidence["n1"].silent {
			t.Error("it is not silent")
		}
	})
}

func TestAPrimaryThatFellSilentIsSuspectedSinceThen(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		r := w.controller()
		w.passes(ownership.WatchFirst)
		w.dead["n1"] = true
		w.passes(25 * time.Second)
		_ = w.asked(r)
		w.passes(5 * time.Second)
		if f := w.asked(r).facts; f.SuspectFor < 5*time.Second || len(f.Proofs) > 0 {
			t.Errorf("it is suspected for %v, with the proofs %v", f.SuspectFor, f.Proofs)
		}
	})
}

// The primary's StorageNode is gone, and so it is none of the nodes that other questions ask witnesses about.
func TestWitnessesAreAskedAboutAPrimaryThatIsNoStorageNode(t *testing.T) {
	objects := slices.DeleteFunc(cluster(t, shared()), func(o client.Object) bool {
		n, is := o.(*v1alpha1.StorageNode)
		return is && n.Name == "n1"
	})
	inWorld(t, objects, func(w *world) {
		r := w.controller(func(r *Reconciler) { r.Witnesses = w.peers })
		w.peers.witnesses = map[string][]ownership.Witness{"n1": {{Name: "n2"}}}
		w.passes(time.Minute)
		if e := w.asked(r).evidence["n1"]; !slices.ContainsFunc(e.votes, func(v ownership.Witness) bool { return v.Name == "n2" }) {
			t.Errorf("the witnesses are %v", e.votes)
		}
	})
}

func TestAKubeletWhoseLeaseCannotBeReadCountsAsAlive(t *testing.T) {
	for _, fails := range []bool{false, true} {
		inWorld(t, cluster(t, shared()), func(w *world) {
			r, read := w.controller(), 0
			r.Live.(*reads).before = func(o runtime.Object) error {
				if _, is := o.(*coordinationv1.Lease); is {
					if read++; read == 2 && fails {
						return errAway
					}
				}
				return nil
			}
			s := suspect{node: "n1"}
			r.leases(w.t.Context(), &s)
			if read != 2 || s.kubeletRead == fails {
				t.Errorf("after %d reads, of which one fails: %v, it is said to have been read: %v", read, fails, s.kubeletRead)
			}
		})
	}
}

func TestAVolumeThatWasMadeAnewWithOneCopyIsLeftAlone(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		r := w.controller()
		w.server.Hold(&v1alpha1.Volume{})
		edits(w, w.volume(), func(v *v1alpha1.Volume) { v.Spec.Replication = v1alpha1.Replication{Factor: 1} })
		before := w.volume().ResourceVersion
		w.oversees(r)
		if after := w.volume().ResourceVersion; after != before {
			t.Errorf("it was written: version %s, then %s", before, after)
		}
	})
}

func TestWhatTakesAnAttachmentAway(t *testing.T) {
	removal := func(v *ownership.Volume) *ownership.Action {
		next := *v
		next.Replicas = slices.Clone(v.Replicas)
		next.Replicas[1].State = ownership.Removing
		return &ownership.Action{Verb: ownership.Record, Next: &next}
	}
	going := shared(func(v *ownership.Volume) { v.Replicas[1].State = ownership.Removing })
	for name, tc := range map[string]struct {
		record *ownership.Volume
		action *ownership.Action
		want   bool
	}{
		"an attachment goes":             {shared(), removal(shared()), true},
		"one has been told to go before": {going, removal(going), false},
		"a copy goes":                    {copies(), removal(copies()), false},
		"all go with their volume":       {shared(func(v *ownership.Volume) { v.Deleting = true }), removal(shared()), false},
		"something else is recorded":     {shared(), &ownership.Action{Verb: ownership.Record, Next: shared()}, false},
		"nothing is recorded":            {shared(), &ownership.Action{Verb: ownership.Wait}, false},
	} {
		if got := takesAway(tc.record, tc.action); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAFirstRecordIsFollowedUpAtOnce(t *testing.T) {
	objects := cluster(t, unused(), pod("db", "n2", pending))
	objects[0].(*v1alpha1.Volume).Status.Ownership = nil
	inWorld(t, objects, func(w *world) {
		r := w.controller(func(r *Reconciler) {
			r.FreshID = func() string { return "fresh" }
			r.Places = given{"n2": {Fits: true, Slots: 1}}
		})
		w.passes(time.Minute)
		w.oversees(r)
		if got := w.attachments(); got != "n2 Reserved" {
			t.Errorf("the attachments are %q", got)
		}
	})
}

func TestAVolumeThatHasNoPlacesYetIsAskedAboutOnce(t *testing.T) {
	objects := cluster(t, copies())
	objects[0].(*v1alpha1.Volume).Status.Ownership = nil
	inWorld(t, objects, func(w *world) {
		r, read := w.controller(), 0
		r.Live.(*reads).before = func(o runtime.Object) error {
			if _, is := o.(*v1alpha1.Volume); is {
				read++
			}
			return nil
		}
		result, err := r.Reconcile(w.t.Context(), named(id))
		if err != nil || read > 2 || !result.IsZero() {
			t.Errorf("it was read %d times, and is asked about again in %v: %v", read, result.RequeueAfter, err)
		}
	})
}

func TestOtherVolumesAreAlertedOnlyForASlot(t *testing.T) {
	for reason, want := range map[ownership.Reason]int{ownership.NoProof: 0, ownership.NoFreeSlot: 1} {
		inWorld(t, cluster(t, shared()), func(w *world) {
			alerted := make(chan event.GenericEvent, 10)
			r := w.controller(func(r *Reconciler) {
				r.also = alerted
				r.Rules = ownership.Chain[ownership.ControllerFacts]{{Name: "waits", Decide: func(*ownership.ControllerFacts) (ownership.Action, bool) {
					return ownership.Action{Verb: ownership.Wait, Why: ownership.Why{Reason: reason, Node: "n1"}}, true
				}}}
			})
			w.oversees(r)
			if len(alerted) != want {
				t.Errorf("%s: %d are alerted", reason, len(alerted))
			}
		})
	}
}
