//go:build platform

package takeover

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/rounds"
)

// drains plays a planned move: the node that writes is cordoned, and its pod ended as a kubelet ends one that was evicted.
// No attachment changes.
func (p *players) drains(t *testing.T, r *rounds.Round) error {
	ctx := t.Context()
	if err := rounds.Until(ctx, again, "a pod writes, and all nodes can take over", func() bool { return p.whole(ctx) }); err != nil {
		return err
	}
	from := p.primary()
	r.Victim = from.name
	if err := p.cordons(ctx, from.name, true); err != nil {
		return err
	}
	term := from.heard.Term()
	pod, err := p.leaves(from)
	if err != nil {
		return err
	}
	var began time.Time
	if err := from.kubelet.ends(pod, p.volume.Name, func() {
		began = time.Now()
		p.Begin(began)
	}); err != nil {
		return err
	}
	if err := p.succeeds(ctx, r, term, began); err != nil {
		return err
	}
	p.mu.Lock()
	unready := p.unready
	p.mu.Unlock()
	if unready != "" {
		return errors.New(unready)
	}
	return p.cordons(ctx, from.name, false)
}

// leaves begins a planned move, and returns the pod that is to end.
func (p *players) leaves(from *node) (*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pod == nil {
		return nil, errors.New("no pod is there")
	}
	p.epoch, p.lost, p.planned, p.unready, p.old = p.known.Status.Ownership.Epoch.Number, from.name, true, "", p.pod.UID
	return p.pod, nil
}

// letsGo notes what the record shows of a planned move.
func (p *players) letsGo(o *v1alpha1.Ownership, next bool, now time.Time) {
	if o.Primary.Phase == v1alpha1.PrimaryReleased || next {
		p.Reach(rounds.Released, now)
	}
	for _, r := range o.Replicas {
		if r.State != v1alpha1.OwnedReady {
			p.unready = fmt.Sprintf("the attachment of %s became %s on the way", r.Node, r.State)
		}
	}
	if len(o.Replicas) != len(p.nodes) {
		p.unready = fmt.Sprintf("%d attachments were left on the way", len(o.Replicas))
	}
}

// cordons marks a node, and waits until the scheduler knows.
func (p *players) cordons(ctx context.Context, name string, is bool) error {
	if err := cluster.Cordon(ctx, p.env.Client, name, is); err != nil {
		return err
	}
	return rounds.Until(ctx, again, "the scheduler knows which nodes are cordoned", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.seen[name].Spec.Unschedulable == is
	})
}
