package oversight

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

var errKilled = errors.New("the process was killed")

// kill ends a process at one of its writes, before or after it. Later writes of the process do not arrive.
type kill struct {
	before, after int // counting from 1; 0 is never
	writes        int
	down          bool
}

func (k *kill) begins(lagging.Write) error {
	if k.down {
		return errKilled
	}
	k.writes++
	if k.down = k.writes == k.before; k.down {
		return errKilled
	}
	return nil
}

func (k *kill) ends(lagging.Write) error {
	if k.down = k.writes == k.after; k.down {
		return errKilled
	}
	return nil
}

// ending is the final state.
type ending struct {
	Record  v1alpha1.Ownership
	Waiting string
	Pods    []string
	Labels  []string
	InUse   []corev1.UniqueVolumeName
}

// failover lets a node fail and be tainted, its volume be taken over, and the node come back with a pod
// whose mount is dead. A killed process is followed by another one.
func failover(t *testing.T, k *kill) (e ending) {
	t.Helper()
	v := shared(func(v *ownership.Volume) { v.Sharing.MaxShares = 3 })
	inWorld(t, cluster(t, v, pod("db", "n1"), pod("back", "n1", pending), pod("next", "n2", pending), attached(id, "n1")), func(w *world) {
		w.lists("n1", ours)
		w.server.Before, w.server.After = k.begins, k.ends
		w.answers("n1")
		r := w.controller(attaches)
		settles := func() {
			for range 4 {
				if _, err := r.Reconcile(w.t.Context(), named(id)); err == nil && !k.down {
					return
				} else if !k.down {
					w.t.Fatal(err)
				}
				k.down, k.before, k.after = false, 0, 0
				r = w.controller(attaches)
				w.passes(agentSilent + 5*time.Second)
			}
			w.t.Fatal("it does not end")
		}
		w.passes(time.Minute)
		settles()
		w.dead["n1"] = true
		w.passes(time.Minute)
		settles()
		edits(w, node("n1"), tainted)
		settles()
		settles() // the end of the pods brings the next question
		w.becomes(func(v *ownership.Volume) {
			v.Epoch, v.Primary = lineage.Epoch{Number: 3, ID: "three"}, ownership.Primary{Node: "n2", Boot: "b", Phase: ownership.Active}
			v.Lineage, v.ExpireAt = v.Lineage.Extend(lineage.Branch{Epoch: v.Epoch}), time.Time{}
		})
		edits(w, node("n1"), func(n *corev1.Node) { n.Spec.Taints = nil })
		w.dead["n1"] = false
		if err := w.server.Others().Create(w.t.Context(), pod("old", "n1")); err != nil {
			w.t.Fatal(err)
		}
		w.passes(time.Minute)
		settles()
		e = ending{Record: *w.volume().Status.Ownership, Waiting: w.waiting(), Pods: w.pods(), Labels: w.labels(), InUse: w.listed("n1")}
	})
	return e
}

func TestAKillAtAnyEffectEndsInTheSameState(t *testing.T) {
	k := &kill{}
	want := failover(t, k)
	if diff := cmp.Diff([]string{"next"}, want.Pods); diff != "" || want.Waiting != "False NothingWaits: " || want.Record.Primary.Node != "n2" || len(want.Labels) != 2 || len(want.InUse) != 0 {
		t.Fatalf("%+v\n%s", want, diff)
	}
	writes := k.writes
	if writes < 6 {
		t.Fatalf("the story has only %d writes", writes)
	}
	for at := 1; at <= writes; at++ {
		for name, k := range map[string]*kill{"before": {before: at}, "after": {after: at}} {
			t.Run(fmt.Sprintf("%s effect %d", name, at), func(t *testing.T) {
				if diff := cmp.Diff(want, failover(t, k)); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// TestOfTwoControllersOneTakesEachStep lets both look at the same time, again and again.
func TestOfTwoControllersOneTakesEachStep(t *testing.T) {
	inWorld(t, cluster(t, shared(func(v *ownership.Volume) { v.Sharing.Persistent = true }), pod("db", "n1")), func(w *world) {
		var mu sync.Mutex
		var taken []string
		w.server.After = func(wr lagging.Write) error {
			mu.Lock()
			defer mu.Unlock()
			switch o := wr.Object.(type) {
			case *v1alpha1.Volume:
				taken = append(taken, fmt.Sprintf("%s, request %v, expires %v", o.Status.Ownership.Primary.Phase, o.Status.Ownership.FenceRequest != nil, o.Status.Ownership.ExpireAt != nil))
			case *corev1.Pod:
				taken = append(taken, "pod ended")
			}
			return nil
		}
		one, two := w.controller(), w.controller()
		for _, r := range w.controllers {
			r.Leads = func() bool { return false } // conditions are written by one alone
		}
		both := func() {
			var wait sync.WaitGroup
			for _, r := range []*Reconciler{one, two} {
				for range 3 {
					wait.Go(func() {
						if _, err := r.Reconcile(w.t.Context(), named(id)); err != nil {
							w.t.Error(err)
						}
					})
				}
			}
			wait.Wait()
		}
		w.passes(time.Minute)
		both()
		w.dead["n1"] = true
		w.passes(agentSilent + 5*time.Second)
		both()
		w.becomes(func(v *ownership.Volume) { v.Replicas[1].Fenced = v.Epoch })
		both()
		both() // without the pod the attachments are unused, and the fence has said when they go
		want := []string{"Active, request true, expires false", "Fenced, request false, expires true", "pod ended"}
		slices.Sort(taken) // what is noted of two writes at once has no order
		if diff := cmp.Diff(want, taken); diff != "" {
			t.Error(diff)
		}
	})
}
