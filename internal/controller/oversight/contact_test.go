package oversight

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ownership"
)

func TestAnErrorIsNeitherAnAbsentRecordNorAnAnswer(t *testing.T) {
	volumes := schema.GroupResource{Group: "berth.dev", Resource: "volumes"}
	for name, test := range map[string]struct {
		of          client.Object
		err         error
		fails, ends bool // the question fails; the contact ends
	}{
		"the record is not there":        {&v1alpha1.Volume{}, apierrors.NewNotFound(volumes, id), false, false},
		"the record may not be read":     {&v1alpha1.Volume{}, apierrors.NewForbidden(volumes, id, nil), true, false},
		"the object is another driver's": {&v1alpha1.Volume{}, fmt.Errorf("live: %w", driver.ErrForeign), true, false},
		"the record cannot be read":      {&v1alpha1.Volume{}, errors.New("connection refused"), true, true},
		"the server is overloaded":       {&v1alpha1.Volume{}, apierrors.NewTooManyRequests("slow", 1), true, true},
		"the server is going down":       {&v1alpha1.Volume{}, apierrors.NewServiceUnavailable("away"), true, true},
		"the answer has no code":         {&v1alpha1.Volume{}, &apierrors.StatusError{}, true, true},
		"the Node cannot be read":        {&corev1.Node{}, errors.New("connection refused"), true, true},
		"the Node is not there":          {&corev1.Node{}, apierrors.NewNotFound(corev1.Resource("nodes"), "n1"), false, false},
		"the leases may not be read":     {&coordinationv1.Lease{}, apierrors.NewForbidden(corev1.Resource("leases"), "n1", nil), false, false},
		"the leases cannot be read":      {&coordinationv1.Lease{}, errors.New("connection refused"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, copies(), pod("db", "n1")), func(w *world) {
				w.peers.holds("n2", "n3")
				r := w.controller()
				w.passes(time.Minute)
				w.dead["n1"] = true
				w.passes(20 * time.Second)
				r.Live.(*reads).before = func(o runtime.Object) error {
					if fmt.Sprintf("%T", o) == fmt.Sprintf("%T", test.of) {
						return test.err
					}
					return nil
				}
				_, err := r.Reconcile(w.t.Context(), named(id))
				if (err != nil) != test.fails {
					t.Errorf("the error is %v", err)
				}
				if ended := r.Contact.look(suspect{}, nil, nil).watching == 0; ended != test.ends {
					t.Errorf("the contact ended: %v", ended)
				}
				if w.phase() != v1alpha1.PrimaryActive || !slices.Contains(w.pods(), "db") {
					t.Errorf("the primary is %s, and pods are left: %v", w.phase(), w.pods())
				}
			})
		})
	}
}

func TestNothingThatWasSeenOutlivesAContact(t *testing.T) {
	for name, breaks := range map[string]func(w *world, r *Reconciler){
		"the connection breaks": func(w *world, _ *Reconciler) { w.leases.stops(true); w.waits(0); w.leases.stops(false) },
		"what comes next is forgotten": func(w *world, _ *Reconciler) {
			w.leases.forgets()
			w.leases.breaks()
		},
		"the next watch begins late": func(w *world, _ *Reconciler) {
			w.leases.hangs(true)
			w.leases.breaks()
			w.waits(reconnect)
			w.leases.hangs(false)
		},
		"the watch ends after it was quiet": func(w *world, _ *Reconciler) {
			w.waits(renewing + time.Second)
			w.leases.breaks()
		},
		"a read fails":              func(_ *world, r *Reconciler) { r.Contact.Break() },
		"the watch brings an error": func(w *world, _ *Reconciler) { w.leases.fails() },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, copies()), func(w *world) {
				r := w.controller()
				w.passes(time.Minute)
				said := map[string][]ownership.Witness{"n1": nil, "n2": nil, "n3": nil}
				w.dead["n1"] = true
				w.passes(30 * time.Second)
				r.Contact.look(suspect{}, said, nil)
				w.passes(30 * time.Second)
				about := suspect{node: "n1", lease: w.leases.stored[v1alpha1.GuardLeasePrefix+"n1"].ResourceVersion, kubeletRead: true}
				before := r.Contact.look(about, said, nil)
				if before.watching < 2*time.Minute || before.lost["n1"] < 30*time.Second || before.leases.Lapsed < time.Minute {
					w.t.Fatalf("before: %+v", before)
				}
				breaks(w, r)
				w.waits(100 * time.Millisecond)
				if v := r.Contact.look(about, said, nil); v.watching != 0 || len(v.lost) != 0 || v.leases != nil {
					t.Errorf("without a contact: %+v", v)
				}
				w.passes(5 * time.Second)
				after := r.Contact.look(about, said, nil)
				if after.watching > 5*time.Second || len(after.lost) != 0 || after.leases == nil || after.leases.Lapsed > 5*time.Second {
					t.Errorf("in the next contact: %+v", after)
				}
				w.passes(25 * time.Second)
				r.Contact.look(about, said, nil)
				w.passes(20 * time.Second)
				last := r.Contact.look(about, said, nil)
				if last.lost["n1"] == 0 || last.leases.Lapsed < 30*time.Second {
					t.Errorf("later: %+v", last)
				}
				if _, proved := ownership.ContractProves(last.leases); !proved {
					t.Error("the contract does not prove it again")
				}
			})
		})
	}
}

// TestAWatchThatEndsIsNoLostContact: API servers end every watch after some minutes.
func TestAWatchThatEndsIsNoLostContact(t *testing.T) {
	inWorld(t, cluster(t, copies()), func(w *world) {
		r := w.controller()
		said := map[string][]ownership.Witness{"n1": nil, "n2": nil, "n3": nil}
		w.dead["n1"] = true
		for i := range 12 {
			w.leases.breaks()
			w.renew() // between two watches
			w.waits(0)
			w.passes(10 * time.Second)
			if v := r.Contact.look(suspect{}, said, nil); v.watching != time.Duration(i+1)*10*time.Second {
				t.Fatalf("after %d watches the contact has lasted for %s", i+2, v.watching)
			}
		}
		about := suspect{node: "n1", lease: w.leases.stored[v1alpha1.GuardLeasePrefix+"n1"].ResourceVersion, kubeletRead: true}
		r.Contact.look(about, said, nil)
		w.passes(kubeletSilent)
		v := r.Contact.look(about, said, nil)
		if _, proved := ownership.ContractProves(v.leases); !proved || len(v.lost) != 1 {
			t.Errorf("a change was missed: %+v", v)
		}
	})
}

// TestTheUpgradeOfAnAgentShutsNoWriterOut: where no guard runs, the kubelet's lease says that the node lives.
func TestTheUpgradeOfAnAgentShutsNoWriterOut(t *testing.T) {
	inWorld(t, cluster(t, shared(func(v *ownership.Volume) { v.Sharing.Persistent = true })), func(w *world) {
		for _, n := range w.storage {
			delete(w.leases.stored, v1alpha1.GuardLeasePrefix+n)
		}
		r := w.controller()
		w.dead["n1"], w.dead["n2"], w.dead["n3"] = true, true, true
		for i := range 60 {
			w.waits(5 * time.Second)
			for _, n := range w.storage {
				if n != "n1" {
					w.leases.put(renewed(namespace, v1alpha1.AgentLeasePrefix+n, time.Now()))
				}
				if i < 30 {
					w.leases.put(renewed(corev1.NamespaceNodeLease, n, time.Now()))
				}
			}
			w.waits(0)
			w.oversees(r)
			if asked := w.volume().Status.Ownership.FenceRequest != nil; asked != (i >= 30+2) {
				w.t.Fatalf("after %d s a standby is asked to shut the writer out: %v", 5*(i+1), asked)
			}
		}
	})
}

func TestAnAgentThatIsAliveKeepsItsNodeFromBeingLost(t *testing.T) {
	inWorld(t, cluster(t, copies()), func(w *world) {
		r := w.controller()
		w.passes(time.Minute)
		w.dead["n1"] = true
		for range 12 {
			w.passes(5 * time.Second)
			w.leases.put(renewed(namespace, v1alpha1.AgentLeasePrefix+"n1", time.Now()))
		}
		w.waits(0)
		said := map[string][]ownership.Witness{"n1": nil}
		if v := r.Contact.look(suspect{}, said, nil); len(v.lost) != 0 {
			t.Errorf("lost is %v", v.lost)
		}
		edit := renewed(namespace, v1alpha1.AgentLeasePrefix+"n1", time.Now())
		for range 6 { // edits are no renewals
			w.passes(5 * time.Second)
			edit = edit.DeepCopy()
			metav1.SetMetaDataAnnotation(&edit.ObjectMeta, "note", fmt.Sprint(w.leases.version))
			w.leases.put(edit)
		}
		w.waits(0)
		if v := r.Contact.look(suspect{}, said, nil); len(v.lost) != 1 {
			t.Errorf("lost is %v", v.lost)
		}
		said["n1"] = []ownership.Witness{{Name: "n2", Alive: true}, {Name: "n3", Alive: true}}
		if v := r.Contact.look(suspect{}, said, nil); len(v.lost) != 0 {
			t.Errorf("lost is %v, though witnesses see it", v.lost)
		}
	})
}

func TestALeaseThatWasNeverRenewedIsHeardOfWhenItIsSeen(t *testing.T) {
	now := time.Unix(1000, 0)
	if got := (heard{}).next("", now); !got.at.Equal(now) {
		t.Errorf("it was heard of at %v", got.at)
	}
}
