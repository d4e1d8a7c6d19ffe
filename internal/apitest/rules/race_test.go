package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

const (
	racers = 8
	epochs = 40
)

// claim tries to begin the epoch after the one that was read. The loser of a
// PUT sees a conflict; the loser of a patch without resourceVersion sees the
// rules, because the server puts the patch on the newest object.
type claim func(ctx context.Context, c client.Client, v *v1alpha1.Volume, next v1alpha1.Epoch, node string) error

func byUpdate(ctx context.Context, c client.Client, v *v1alpha1.Volume, next v1alpha1.Epoch, node string) error {
	takes(v, next, node)
	return c.Status().Update(ctx, v)
}

func byBlindPatch(ctx context.Context, c client.Client, v *v1alpha1.Volume, next v1alpha1.Epoch, node string) error {
	takes(v, next, node)
	body, err := json.Marshal(map[string]any{"status": map[string]any{"ownership": v.Status.Ownership}})
	if err != nil {
		return err
	}
	return c.Status().Patch(ctx, v, client.RawPatch(types.MergePatchType, body))
}

func takes(v *v1alpha1.Volume, next v1alpha1.Epoch, node string) {
	o := v.Status.Ownership
	o.Epoch, o.Primary = next, v1alpha1.Primary{Node: node, Boot: "boot", Phase: v1alpha1.PrimaryPreparing}
	o.Lineage = append(o.Lineage[max(0, len(o.Lineage)-31):], v1alpha1.Branch{Epoch: next, From: o.RecoveryPoint})
}

// wins records the ids of the epochs that were won, by number.
type wins struct {
	sync.Mutex
	ids map[int64][]string
}

func (w *wins) add(e v1alpha1.Epoch) {
	w.Lock()
	defer w.Unlock()
	w.ids[e.Number] = append(w.ids[e.Number], e.ID)
}

// race claims epochs, and releases those that it won, until the last epoch is reached.
func race(ctx context.Context, c client.Client, name, node string, try claim, won *wins) error {
	for attempt := 0; ; attempt++ {
		v := &v1alpha1.Volume{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, v); err != nil {
			return err
		}
		o := v.Status.Ownership
		last := o.Epoch.Number
		if last >= epochs {
			return nil
		}
		if o.Primary.Phase != v1alpha1.PrimaryReleased {
			continue // another node owns it, and gives it up at once
		}
		next := v1alpha1.Epoch{Number: last + 1, ID: fmt.Sprintf("%s-attempt-%d", node, attempt)}
		switch err := try(ctx, c, v, next, node); {
		case apierrors.IsConflict(err), apierrors.IsInvalid(err):
			continue
		case err != nil:
			return err
		}
		won.add(next)
		v.Status.Ownership.Primary.Phase = v1alpha1.PrimaryReleased
		if err := c.Status().Update(ctx, v); err != nil {
			return fmt.Errorf("node %s lost epoch %d while it held it: %w", node, next.Number, err)
		}
	}
}

func TestEightNodesThatRaceForAVolumeWinEachEpochOnce(t *testing.T) {
	env := apitest.Start(t)
	for name, try := range map[string]claim{"by update": byUpdate, "by a patch without resourceVersion": byBlindPatch} {
		t.Run(name, func(t *testing.T) {
			var nodes []string
			for i := range racers {
				nodes = append(nodes, fmt.Sprintf("node-%d", i))
			}
			v := live(t, env.Controller(t), newVolume(t, replicated, wanted(nodes...)), raced(nodes))
			won := &wins{ids: map[int64][]string{}}
			errs := make(chan error, racers)
			for _, node := range nodes {
				c := env.Agent(t, node)
				go func() { errs <- race(t.Context(), c, v.Name, node, try, won) }()
			}
			for range nodes {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			for n := int64(2); n <= epochs; n++ {
				if len(won.ids[n]) != 1 {
					t.Errorf("epoch %d was won by %q, want one winner", n, won.ids[n])
				}
			}
		})
	}
}

// raced is a released volume with a ready replica on each node.
func raced(nodes []string) change {
	return func(v *v1alpha1.Volume) {
		v.Status.Ownership = &v1alpha1.Ownership{Epoch: nth(1), Primary: v1alpha1.Primary{Phase: v1alpha1.PrimaryReleased},
			RecoveryPoint: at(1, 1), Lineage: []v1alpha1.Branch{{Epoch: nth(1)}}}
		for _, node := range nodes {
			counted(node, v1alpha1.OwnedReady)(v)
		}
	}
}
