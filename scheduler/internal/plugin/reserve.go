package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/usecase/volumes"
)

// acceptance is how long PreBind waits for the nodes' answers. A node that takes
// longer may well answer later, and CreateVolume waits for that.
const acceptance = 5 * time.Second

func (p *Plugin) patience() time.Duration { return cmp.Or(p.acceptance, acceptance) }

// Reserve holds room for all of the pod's volumes on the node, or for none. The
// room that Filter saw may be gone by now; the ledger works everything out again.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	c := read(state)
	if c == nil {
		return nil
	}
	wanted, request := c.wantedOn(node), c.request
	if c.static != nil {
		request, _ = p.Book.Request(c.options, demandsOf(wanted)...)
	}
	p.Refusals.refuse(c.refusal, node, ledger.NoRoom) // before the ledger is asked: every change from now on wakes the pod
	on := trial{uid(pod), node}
	if state.IsPodGroupSchedulingCycle() {
		p.Refusals.try(on)
	}
	if _, verdict := p.Book.Reserve(node, request); !verdict.Fits() {
		p.Refusals.tried(on)
		return fwk.NewStatus(fwk.Unschedulable, c.why(verdict))
	}
	c.refusal.refused.Store(false)
	c.create = toCreate(wanted)
	return nil
}

// toCreate are the Volumes that PreBind makes. The node makes an inline volume,
// when the pod is there; a claim that is populated gets another claim's volume.
func toCreate(wanted []schedule.Wanted) []schedule.Wanted {
	var create []schedule.Wanted
	for _, w := range wanted {
		if w.Claim != nil && !w.Populated {
			create = append(create, w)
		}
	}
	return create
}

// Unreserve gives back the room that the pod holds on the node. It may be called
// any number of times, and without a Reserve before it.
func (p *Plugin) Unreserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node string) {
	if read(state) != nil {
		p.Book.Unreserve(uid(pod), node)
		p.Refusals.tried(trial{uid(pod), node})
	}
}

// PreBindPreFlight skips pods for which nothing is to be written.
func (p *Plugin) PreBindPreFlight(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	result := &fwk.PreBindPreFlightResult{AllowParallel: false}
	if c := read(state); c == nil || len(c.create) == 0 {
		return result, fwk.NewStatus(fwk.Skip)
	}
	return result, nil
}

// PreBind writes the pod's Volumes, in the pools that are held for them.
//
// A refusal is an error and no rejection: a rejected pod would wait for an event,
// while one that failed is tried again, and by then the ledger knows. PreBind then
// gives up the room of the pod's other Volumes. Otherwise two pods that each have a
// part of the room they need would wait for each other.
func (p *Plugin) PreBind(ctx context.Context, state fwk.CycleState, _ *corev1.Pod, node string) *fwk.Status {
	c := read(state)
	if c == nil {
		return nil
	}
	var all sync.WaitGroup
	failed := make([]error, len(c.create))
	for i, w := range c.create {
		all.Go(func() { failed[i] = p.create(ctx, w, node) })
	}
	all.Wait() // one that fails does not cut the others short: the room they took has to be known
	at := slices.IndexFunc(failed, func(err error) bool { return errors.Is(err, volumes.ErrUnplaceable) })
	if at < 0 {
		return fwk.AsStatus(errors.Join(failed...))
	}
	p.abandon(ctx, c.create)
	return fwk.AsStatus(failed[at])
}

// abandon gives up the Volumes of a pod that cannot have all of them.
func (p *Plugin) abandon(ctx context.Context, created []schedule.Wanted) {
	if len(created) < 2 {
		return // the refused volume is off its node already
	}
	for _, w := range created {
		if err := p.Volumes.Abandon(ctx, w.Request.Name); err != nil {
			// The controller collects it after a while.
			klog.FromContext(ctx).Error(err, "giving up a reserved volume", "volume", w.Request.Name)
		}
	}
}

func (p *Plugin) create(ctx context.Context, w schedule.Wanted, node string) error {
	r := w.Request
	r.Topology = volumes.Topology{Allowed: []string{node}, Preferred: []string{node}}
	r.Pool, _ = p.Book.Held(w.Demand.Owner, node)
	bounded, cancel := context.WithTimeout(ctx, p.patience())
	defer cancel()
	_, err := p.Volumes.Create(bounded, r)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		klog.FromContext(ctx).Info("the node takes long to answer", "volume", r.Name, "node", node, "waitedFor", p.patience())
		return nil
	}
	if err != nil {
		return fmt.Errorf("reserving a volume for claim %s on node %s: %w", w.Claim.Name, node, err)
	}
	return nil
}
