package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

// FactsOf are the facts about a Volume that was read.
func FactsOf(v *v1alpha1.Volume, nodes []ownership.Machine) (*Facts, error) {
	r, err := record.From(v)
	if err != nil {
		return nil, err
	}
	w := meta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionWaiting)
	return &Facts{Name: v.Name, Record: r, Nodes: nodes, Braked: w != nil && w.Status == "True" && w.Reason == string(ownership.BrakeHeld)}, nil
}

// attempts bounds how often Ask reads the record anew because another process was faster.
const attempts = 5

// Ask writes the request into the record as the API server has it now, unless it is there already. The epoch
// that the first plan ends may be over by now. Then Ask asks no standby, because the next writer is another one.
func Ask(ctx context.Context, c client.Client, first *Plan, to string, nodes []ownership.Machine) (Plan, error) {
	for range attempts {
		v := &v1alpha1.Volume{}
		if err := c.Get(ctx, client.ObjectKey{Name: first.Volume}, v); err != nil {
			return Plan{}, fmt.Errorf("reading volume %s: %w", first.Volume, err)
		}
		f, err := FactsOf(v, nodes)
		if err != nil {
			return Plan{}, err
		}
		if w := f.Record.On(first.From); w.Epoch.Number != first.Epoch || !w.Primary.Phase.Open() {
			over := *first
			over.Over = true
			return over, nil
		}
		p, err := PlanOf(f, first.From, to)
		if err != nil || p.Asked {
			return p, err
		}
		next, err := record.Into(v, f.Record.On(p.From).RequestFence(p.By).Stored())
		if err != nil {
			return p, err
		}
		switch err := c.Status().Update(ctx, next); {
		case apierrors.IsConflict(err):
			continue
		case err != nil:
			return p, fmt.Errorf("asking node %s to shut node %s out: %w", p.By, p.From, err)
		}
		return p, nil
	}
	return Plan{}, fmt.Errorf("the record of volume %s changes all the time: repeat the command", first.Volume)
}

// Wait waits a moment between two looks.
type Wait func(ctx context.Context) error

// Follower looks at the record until a failover is over, or for as long as Patience.
type Follower struct {
	Client   client.Client
	Clock    clock.PassiveClock
	Wait     Wait
	Patience time.Duration
	// Tell gets each step once.
	Tell func(step string) error
}

// Follow tells each step of a failover. wanted tells whether a pod shall go on with the volume.
func (f *Follower) Follow(ctx context.Context, p *Plan, wanted bool) error {
	told, until := 0, f.Clock.Now().Add(f.Patience)
	for {
		v := &v1alpha1.Volume{}
		if err := f.Client.Get(ctx, client.ObjectKey{Name: p.Volume}, v); err != nil {
			return fmt.Errorf("reading volume %s: %w", p.Volume, err)
		}
		r, err := record.From(v)
		if err != nil {
			return err
		}
		steps, over := Progress(p, r, wanted)
		for ; told < len(steps); told++ {
			if err := f.Tell(steps[told]); err != nil {
				return err
			}
		}
		if over {
			return nil
		}
		if !f.Clock.Now().Before(until) {
			return errors.New(late(v, f.Patience))
		}
		if err := f.Wait(ctx); err != nil {
			return err
		}
	}
}

// late says what an unfinished failover waits for.
func late(v *v1alpha1.Volume, patience time.Duration) string {
	why := ""
	if w := meta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionWaiting); w != nil && w.Status == "True" {
		why = " (" + w.Message + ")"
	}
	return fmt.Sprintf("not finished after %v%s; it goes on by itself: kubectl berth replicas %s", patience, why, v.Name)
}
