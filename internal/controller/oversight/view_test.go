package oversight

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

func TestWhatThisProcessItselfSaysOfANode(t *testing.T) {
	const agent, kubelet = "lease of the agent", "lease of the kubelet"
	votes := func(alive bool, names ...string) (all []ownership.Witness) {
		for _, n := range names {
			all = append(all, ownership.Witness{Name: n, Alive: alive})
		}
		return all
	}
	for name, tc := range map[string]struct {
		suspect suspect
		silent  time.Duration
		want    []ownership.Witness
		vouched bool
	}{
		"no node":                            {suspect{}, 0, nil, false},
		"its guard has renewed a moment ago": {suspect{node: "n1"}, 0, votes(true, guardsLease), true},
		"its guard is late":                  {suspect{node: "n1"}, 6 * time.Second, votes(true, agent), false},
		"it is silent":                       {suspect{node: "n1"}, time.Minute, votes(false, guardsLease, agent), false},
		"it is silent, and its kubelet's Lease was read": {suspect{node: "n1", kubeletRead: true}, time.Minute, append(votes(false, guardsLease, agent), votes(true, kubelet)...), false},
		"nothing was ever heard of it":                   {suspect{node: "n9"}, 0, votes(true, agent), false},
		"nothing was heard of it for a minute":           {suspect{node: "n9"}, time.Minute, votes(false, agent), false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, shared()), func(w *world) {
				r := w.controller()
				w.dead["n1"] = true
				w.passes(tc.silent)
				v := r.Contact.look(tc.suspect, nil, nil)
				if diff := cmp.Diff(tc.want, v.votes); diff != "" {
					t.Error(diff)
				}
				if (v.vouched > 0) != tc.vouched || v.vouched > guardLate || (v.leases != nil) != (tc.suspect.node != "") {
					t.Errorf("its guard vouches for it for %v more, and its leases are %+v", v.vouched, v.leases)
				}
			})
		})
	}
}

// An agent that is replaced is silent for a while.
func TestANodeWhoseGuardRenewsIsNotLost(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		r := w.controller()
		w.dead["n1"] = true
		for range 12 {
			w.passes(5 * time.Second)
			w.leases.put(guardLease("n1", w.storage, time.Duration(time.Now().UnixNano())))
		}
		w.waits(time.Second)
		v := r.Contact.look(suspect{}, map[string][]ownership.Witness{"n1": nil, "n2": nil}, nil)
		if len(v.lost) > 0 {
			t.Errorf("lost are %v", v.lost)
		}
	})
}

func TestWitnessesAreAskedAboutEveryStorageNode(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		r := w.controller(func(r *Reconciler) { r.Witnesses = w.peers })
		w.peers.witnesses = map[string][]ownership.Witness{"n2": {{Name: "n3"}}}
		if diff := cmp.Diff(map[string][]ownership.Witness{"n1": nil, "n2": {{Name: "n3"}}, "n3": nil}, r.saidOfAll(w.t.Context())); diff != "" {
			t.Error(diff)
		}
	})
}

func TestANodeIsLostSinceItFellSilentLast(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		r := w.controller()
		lost := func() time.Duration {
			return r.Contact.look(suspect{}, map[string][]ownership.Witness{"n1": nil}, nil).lost["n1"]
		}
		for range 2 {
			w.dead["n1"] = true
			for lost() == 0 {
				w.passes(time.Second)
			}
			w.passes(10 * time.Second)
			if got := lost(); got < 10*time.Second || got > 12*time.Second {
				t.Errorf("it is lost for %v", got)
			}
			delete(w.dead, "n1")
			w.passes(10 * time.Second)
			if got := lost(); got > 0 {
				t.Errorf("it answers, and is lost for %v", got)
			}
		}
	})
}

func TestAKubeletThatCannotBeAskedForCountsAsAlive(t *testing.T) {
	for read, alive := range map[bool]bool{false: true, true: false} {
		inWorld(t, cluster(t, shared()), func(w *world) {
			r, s := w.controller(), suspect{node: "n1", kubeletRead: read}
			_ = r.Contact.look(s, nil, nil)
			w.passes(2 * kubeletSilent)
			if got := r.Contact.look(s, nil, nil).leases.KubeletAlive; got != alive {
				t.Errorf("its Lease is read: %v, and it counts as alive: %v", read, got)
			}
		})
	}
}

func TestANodeWithoutAGuardIsNotSilent(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		r := w.controller()
		w.passes(worthAsking)
		if r.Contact.silent("n9") {
			t.Error("it is silent")
		}
	})
}

func TestTheSilenceOfAGuardCountsFromItsLastRenewal(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		r := w.controller()
		w.dead["n1"] = true
		w.passes(time.Minute)
		w.leases.put(renewed(namespace, v1alpha1.GuardLeasePrefix+"n2", time.Now()))
		w.waits(0)
		silences := r.Contact.Silences()
		if silences["n1"] < time.Minute || silences["n2"] != 0 {
			t.Errorf("the silences are %v", silences)
		}
		if _, known := silences["n9"]; known {
			t.Error("a node without a guard is silent")
		}
		r.Contact.Break()
		if silences := r.Contact.Silences(); silences != nil {
			t.Errorf("without contact the silences are %v", silences)
		}
	})
}
