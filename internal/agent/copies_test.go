package agent

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

// An interval after a write both nodes have it, whichever of them has the pod.
func TestAVolumeWithCopiesMovesFromNodeToNodeWithItsData(t *testing.T) {
	h := newHerd(t)
	a, b := h.keepers[alpha], h.keepers[beta]
	h.until("both have the first, empty snapshot", h.same)
	h.begins(alpha)
	a.writes("of alpha")
	if err := b.stages(h.id); err == nil {
		t.Error("a second node stages the volume")
	}
	h.ends(alpha)
	h.begins(beta)
	if got := b.disks.Read(h.id); got != "of alpha" {
		t.Errorf("beta reads %q", got)
	}
	b.writes("of beta")
	h.ends(beta)
	h.begins(alpha)
	if got := a.disks.Read(h.id); got != "of beta" {
		t.Errorf("alpha reads %q", got)
	}
	h.ends(alpha)
	if err := h.Client.Delete(t.Context(), h.volume()); err != nil {
		t.Fatal(err)
	}
	h.until("both copies are in the trash", func() error {
		if !a.state().Condemned || !b.state().Condemned {
			return errors.New("not yet")
		}
		return nil
	})
	h.clock.ahead.Add(int64(ownership.Grace + time.Minute))
	h.until("both copies are gone", func() error {
		if a.state().Exists || b.state().Exists || a.state().Size+b.state().Size > 0 {
			return errors.New("not yet")
		}
		for _, r := range h.volume().Status.Ownership.Replicas {
			if r.State != v1alpha1.OwnedGone {
				return fmt.Errorf("the replica on %s is %s", r.Node, r.State)
			}
		}
		return nil
	})
}

// The writer's machine is lost. What another node was promised is there, what came after it is a recorded loss, and
// the old writer keeps that as a branch when it returns.
func TestAVolumeWithCopiesIsTakenOverAtTheNewestPromisedPointWhenItsWritersNodeIsLost(t *testing.T) {
	h := newHerd(t)
	a, b := h.keepers[alpha], h.keepers[beta]
	h.until("both have the first, empty snapshot", h.same)
	h.begins(alpha)
	first := h.volume().Status.Ownership.Epoch
	a.writes("promised")
	h.clock.ahead.Add(int64(61 * time.Second))
	h.until("beta has what was written", func() error {
		if tip := b.tip(); int64(tip.Epoch.Number) != first.Number || h.same() != nil {
			return fmt.Errorf("it has %v", tip)
		}
		return nil
	})
	promised := b.tip()
	a.traffic.cut()
	a.writes("late")
	a.loses()
	h.proofs = []ownership.Proof{{Kind: ownership.PowerOff, Node: a.name, Boot: a.name + "-boot-0"}}
	h.lost = []string{a.name}
	h.begins(beta)
	o := h.volume().Status.Ownership
	if got := b.disks.Read(h.id); got != "promised" || o.Primary.Node != b.name || int64(promised.Seq) != o.RecoveryPoint.Seq || o.RecoveryPoint.Epoch != first {
		t.Errorf("beta reads %q; the record says %s %s, and goes on from %v, which is to be %v", got, o.Primary.Phase, o.Primary.Node, o.RecoveryPoint, promised)
	}
	b.writes("of beta")

	a.traffic.mend()
	h.proofs, h.lost = nil, nil
	a.start()
	h.clock.ahead.Add(int64(61 * time.Second))
	h.until("the old writer follows", func() error {
		if tip := b.tip(); int64(tip.Epoch.Number) <= first.Number {
			return fmt.Errorf("the newest point of beta is %v", tip)
		}
		return h.same()
	})
	if kept := a.state().Branches; len(kept) != 1 || kept[0].From != promised {
		t.Errorf("the old writer keeps the branches %+v, want one from %v", kept, promised)
	}
	if !slices.Contains(a.disks.Contents(h.id), "late") {
		t.Errorf("its late write is lost: it has %q", a.disks.Contents(h.id))
	}
	h.ends(beta)
	h.begins(alpha)
	if got := a.disks.Read(h.id); got != "of beta" {
		t.Errorf("alpha reads %q", got)
	}
}

// A volume with one copy is served beside those with several as it was before.
func TestAVolumeWithOneCopyIsServedBesideThoseWithSeveral(t *testing.T) {
	h := newHerd(t)
	a := h.keepers[alpha]
	one := h.volume()
	one.ResourceVersion, one.UID, one.ManagedFields, one.Name = "", "", nil, v1alpha1.VolumeName(t.Name()+"one")
	one.Spec.Replication, one.Spec.Placement = v1alpha1.Replication{Factor: 1}, v1alpha1.PlacementNode
	one.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: a.name, Pool: h.pool.Name}}
	one.Labels, one.Finalizers, one.Status = map[string]string{v1alpha1.ReplicaLabel(a.name): ""}, nil, v1alpha1.VolumeStatus{}
	if err := h.Client.Create(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	read := func() *v1alpha1.Volume {
		v := &v1alpha1.Volume{}
		if err := h.Client.Get(t.Context(), client.ObjectKey{Name: one.Name}, v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	h.until("its replica is ready", func() error {
		if e := read().Entry(a.name); e == nil || !e.Ready {
			return fmt.Errorf("its entry is %+v", e)
		}
		return nil
	})
	h.until("it is staged", func() error { return a.stages(one.Name) })
	if err := a.publishes(one.Name); err != nil {
		t.Error(err)
	}
	if v := read(); v.Status.Ownership != nil {
		t.Errorf("it has a record: %+v", v.Status.Ownership)
	}
	if known, err := a.agent.Load().copies.knows(one.Name); err != nil || known {
		t.Errorf("the node keeps epochs of it: %v, %v", known, err)
	}
	h.until("the copies are the same", h.same)
	if e := h.volume().Status.Replicas; len(e) > 0 {
		t.Errorf("the replica worker reports copies: %+v", e)
	}
}

// A pool that is away may come back with the copy. The node says nothing of it to others until then.
func TestANodeWhosePoolIsAwaySaysNothingOfItsCopy(t *testing.T) {
	h := newHerd(t)
	h.until("the copies are the same", h.same)
	b := h.keepers[beta]
	b.disks.RemovePool(h.pool)
	h.until("the agent of beta knows that its pool is away", func() error {
		if p, may, err := b.agent.Load().Copies().Peer(t.Context(), h.id, h.keepers[alpha].name); err == nil {
			return fmt.Errorf("it answers %+v, %v", p.Copy, may)
		} else if !errors.Is(err, provision.ErrUnavailable) {
			return err
		}
		return nil
	})
	for _, r := range h.volume().Status.Ownership.Replicas {
		if r.State != v1alpha1.OwnedReady {
			t.Errorf("the replica on %s is %s", r.Node, r.State)
		}
	}
}
