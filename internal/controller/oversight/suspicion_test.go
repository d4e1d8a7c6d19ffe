package oversight

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

// unreached are the votes of a controller and of nodes that do not reach a node.
func unreached(nodes ...string) (votes []ownership.Witness) {
	for _, n := range append([]string{"controller"}, nodes...) {
		votes = append(votes, ownership.Witness{Name: n})
	}
	return votes
}

// reserved is a cluster whose shared disk keeps reservations: suspicion is enough to ask a standby.
func reserved(t *testing.T, play func(w *world, asked func() bool)) {
	inWorld(t, cluster(t, shared(func(v *ownership.Volume) { v.Sharing.Persistent = true })), func(w *world) {
		r := w.controller(func(r *Reconciler) { r.Witnesses = w.peers })
		w.passes(time.Minute)
		play(w, func() bool {
			w.oversees(r)
			return w.volume().Status.Ownership.FenceRequest != nil
		})
	})
}

func TestANodeThatFallsSilentIsSuspectedOnceItsGuardMissedARenewal(t *testing.T) {
	reserved(t, func(w *world, asked func() bool) {
		w.dead["n1"] = true
		w.peers.witnesses = map[string][]ownership.Witness{"n1": unreached("n2", "n3")}
		w.waits(guardLate - time.Second)
		if asked() {
			t.Error("a standby is asked while the guard's renewal is not late")
		}
		w.waits(time.Second)
		if !asked() {
			t.Errorf("no standby is asked when the guard has missed a renewal, and no node reaches the node: %v", w.volume().Status.Ownership)
		}
	})
}

func TestANodeWhoseGuardRenewsIsNotShutOutThoughNoNodeReachesItsAgent(t *testing.T) {
	reserved(t, func(w *world, asked func() bool) {
		w.peers.witnesses = map[string][]ownership.Witness{"n1": unreached("n2", "n3", "n4", "n5", "n6", "n7")}
		w.dead["n1"] = true // its agent renews nothing
		for sent := range 30 {
			w.waits(4 * time.Second)
			now := time.Now()
			for _, n := range []string{"n2", "n3"} {
				w.leases.put(guardLease(n, w.storage, time.Duration(now.UnixNano())))
				w.leases.put(renewed(namespace, v1alpha1.AgentLeasePrefix+n, now))
			}
			w.leases.put(guardLease("n1", w.storage, time.Duration(now.UnixNano())))
			w.leases.put(renewed(corev1.NamespaceNodeLease, "n1", now))
			w.waits(0)
			if asked() {
				t.Fatalf("a standby is asked to shut out a node whose guard has renewed %d times since its agent ended", sent+1)
			}
		}
	})
}

// A node that is cut from all others and renews at the API server is like this: only its guard speaks for it.
func TestAGuardThatHasRenewedSinceNobodyReachesItsNodeMayBeLateOnce(t *testing.T) {
	reserved(t, func(w *world, asked func() bool) {
		w.peers.witnesses = map[string][]ownership.Witness{"n1": unreached("n2", "n3", "n4", "n5", "n6", "n7")}
		w.dead["n1"] = true
		renews := func() { w.leases.put(guardLease("n1", w.storage, time.Duration(time.Now().UnixNano()))) }
		renews()
		w.waits(time.Second)
		if asked() {
			t.Fatal("a standby is asked a second after the guard's renewal")
		}
		w.waits(3 * time.Second)
		renews() // while it is suspected
		w.waits(guardSilent - time.Second)
		if asked() {
			t.Error("a standby is asked because one renewal is late")
		}
		w.waits(time.Second)
		if !asked() {
			t.Error("no standby is asked when the guard has been silent for long")
		}
	})
}

func TestALateGuardAloneMakesNoNodeSuspected(t *testing.T) {
	reserved(t, func(w *world, asked func() bool) {
		w.dead["n1"] = true
		w.peers.witnesses = map[string][]ownership.Witness{"n1": {{Name: "controller", Alive: true}}}
		w.waits(guardSilent - time.Second)
		if asked() {
			t.Error("a standby is asked to shut out a node that the controller hears")
		}
	})
}
