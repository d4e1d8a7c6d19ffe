package oversight

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

// deletes has an administrator delete a Node. Its report goes with it.
func (w *world) deletes(node string) {
	w.t.Helper()
	for _, o := range []client.Object{&corev1.Node{}, &v1alpha1.StorageNode{}} {
		o.SetName(node)
		if err := w.server.Others().Delete(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// entries are the states of the replicas by node.
func (w *world) entries() map[string]v1alpha1.OwnedState {
	w.t.Helper()
	states := map[string]v1alpha1.OwnedState{}
	for _, r := range w.volume().Status.Ownership.Replicas {
		states[r.Node] = r.State
	}
	return states
}

func threeStand(v *ownership.Volume) {
	v.Factor, v.Sharing = 3, ownership.Sharing{MaxShares: 3, Persistent: true}
	v.Replicas = append(v.Replicas, ownership.Replica{Node: "n3", State: ownership.Ready})
}

// The machine of a standby was taken out of the cluster, for good.
func TestAStandbyWhoseNodeWasDeletedIsNotAskedToShutTheWriterOut(t *testing.T) {
	inWorld(t, cluster(t, shared(threeStand)), func(w *world) {
		r := w.controller()
		w.passes(time.Minute)
		w.deletes("n2")
		w.dead["n2"] = true
		w.passes(time.Minute)
		w.dead["n1"] = true
		w.passes(agentSilent + 5*time.Second)
		w.oversees(r)
		o := w.volume().Status.Ownership
		if o.FenceRequest == nil || o.FenceRequest.Executor != "n3" {
			t.Errorf("the request is %v", o.FenceRequest)
		}
	})
}

func TestTheStandbyOfADeletedNodeIsReplaced(t *testing.T) {
	places := given{"n3": {Fits: true, Slots: 1}}
	for name, test := range map[string]struct {
		shares int
		dead   bool
		want   map[string]v1alpha1.OwnedState
	}{
		"with a share to spare":    {3, true, map[string]v1alpha1.OwnedState{"n1": v1alpha1.OwnedReady, "n3": v1alpha1.OwnedReserved}},
		"with its own share":       {2, true, map[string]v1alpha1.OwnedState{"n1": v1alpha1.OwnedReady, "n3": v1alpha1.OwnedReserved}},
		"not while it is heard of": {2, false, map[string]v1alpha1.OwnedState{"n1": v1alpha1.OwnedReady, "n2": v1alpha1.OwnedReady}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, shared(func(v *ownership.Volume) { v.Sharing.MaxShares = test.shares }), pod("db", "n1")), func(w *world) {
				r := w.controller(func(r *Reconciler) { r.Places = places })
				w.passes(time.Minute)
				w.deletes("n2")
				w.dead["n2"] = test.dead
				w.passes(time.Minute)
				w.oversees(r)
				w.passes(ownership.RebuildDelay + time.Minute)
				w.oversees(r)
				if diff := cmp.Diff(test.want, w.entries()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// A process that begins later has never heard of the node.
func TestAControllerThatBeginsAfterANodeWasDeletedFindsItLost(t *testing.T) {
	inWorld(t, cluster(t, shared(threeStand)), func(w *world) {
		w.deletes("n2")
		w.dead["n2"] = true
		for _, lease := range []string{v1alpha1.GuardLeasePrefix + "n2", v1alpha1.AgentLeasePrefix + "n2"} {
			w.leases.deletes(lease)
		}
		r := w.controller()
		w.passes(agentSilent + 5*time.Second)
		if nodes := r.Contact.troubled(r.saidOfAll(w.t.Context())); !nodes["n2"] {
			t.Errorf("troubled are %v: nobody looks at the volume", nodes)
		}
		w.oversees(r)
		if !meta.IsStatusConditionTrue(w.volume().Status.Conditions, v1alpha1.ConditionReplicaAway) {
			t.Errorf("the volume says %v", w.volume().Status.Conditions)
		}
		if result, err := r.Reconcile(w.t.Context(), named(id)); err != nil || result.RequeueAfter == 0 {
			t.Errorf("it is asked about again after %v, %v", result.RequeueAfter, err)
		}
	})
}

// noting notes whom a process asks.
type noting struct {
	Peers
	asked []string
}

func (n *noting) Ask(ctx context.Context, volume string, nodes []string) []ownership.Peer {
	n.asked = nodes
	return n.Peers.Ask(ctx, volume, nodes)
}

// Its machine runs, and may know of an epoch that a record from a backup does not.
func TestANodeThatWasDeletedIsAskedWhenNoNodeOfTheRecordCanTakeTheVolume(t *testing.T) {
	inWorld(t, cluster(t, shared(phase(ownership.Released)), pod("db", "n1", pending)), func(w *world) {
		peers := &noting{Peers: w.peers}
		r := w.controller(func(r *Reconciler) { r.Peers = peers })
		w.passes(time.Minute)
		w.deletes("n3")
		w.asked(r)
		if want := []string{"n1", "n2", "n3"}; !slices.Equal(peers.asked, want) {
			t.Errorf("asked are %v", peers.asked)
		}
	})
}
