package volumes

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/quantity"
)

// named is how many nodes a message spells out.
const named = 3

// unusable is the error for a request that no node can meet, whatever room it has.
func (p *placing) unusable(ctx context.Context, v ledger.Verdict) error {
	if v.Reason != ledger.UnknownClass {
		return fail(provision.ErrUnavailable, "%s", v.Reason.Message())
	}
	if err := p.mustExist(ctx, p.request.PoolClass); err != nil {
		return err
	}
	return fail(provision.ErrUnavailable, "PoolClass %q is not taken in yet", p.request.PoolClass)
}

// mustExist returns nil for a class that exists. A class that the cache lacks may be
// new, so the API server is asked before the class is refused.
func (s *Service) mustExist(ctx context.Context, name string) error {
	class, key := &v1alpha1.PoolClass{}, types.NamespacedName{Name: name}
	err := s.client.Get(ctx, key, class)
	if apierrors.IsNotFound(err) {
		err = s.live.Get(ctx, key, class)
	}
	switch {
	case apierrors.IsNotFound(err):
		return fail(provision.ErrInvalid, "PoolClass %q does not exist: create it, or correct the StorageClass", name)
	case err != nil:
		return fmt.Errorf("reading PoolClass %s: %w", name, err)
	}
	return nil
}

// unaligned is empty, or says that the pool carves no size up to the limit.
func (p *placing) unaligned(node *ledger.Node, pool string) string {
	limit := p.request.Size.Limit
	in, known := node.Pool(pool)
	if limit == 0 || !known {
		return ""
	}
	size := (p.bytes + in.Unit - 1) / in.Unit * in.Unit
	if size <= limit {
		return ""
	}
	return fmt.Sprintf("pool %s carves multiples of %s: %s would become %s, over the limit of %s", pool,
		quantity.Bytes(in.Unit), quantity.Bytes(p.bytes), quantity.Bytes(size), quantity.Bytes(limit))
}

// unplaceable says of the first nodes that serve the class why they do not take
// the volume. A node that only a hold elsewhere keeps from it takes it as soon as
// that hold ends: the claim must not lose its node for that.
func (p *placing) unplaceable(ctx context.Context, r *ledger.Request, nodes []string) error {
	var told []string
	served, unaligned, held := 0, 0, false
	for _, name := range nodes {
		message, reason := p.refusal(ctx, r, name)
		if reason == ledger.NotServed || reason == ledger.NotReported {
			continue
		}
		if served++; served <= named {
			told = append(told, fmt.Sprintf("node %s: %s", name, message))
		}
		if reason == ledger.Fits {
			unaligned++
		}
		held = held || reason == ledger.HeldElsewhere
	}
	if more := served - named; more > 0 {
		told = append(told, fmt.Sprintf("and %d more nodes", more))
	}
	switch {
	case served == 0:
		return fail(ErrUnplaceable, "%s", p.notServed())
	case served == unaligned:
		return fail(ErrOutOfRange, "%s", strings.Join(told, "; "))
	case held:
		return fail(provision.ErrUnavailable, "%s", strings.Join(told, "; "))
	default:
		return fail(ErrUnplaceable, "%s", strings.Join(told, "; "))
	}
}

// refusal says why a node does not take the volume. The reason is Fits where only the
// size limit prevents it.
func (p *placing) refusal(ctx context.Context, r *ledger.Request, name string) (message string, reason ledger.Reason) {
	node := p.ledger.Node(name)
	choices, verdict := node.Place(r, nil)
	switch said, refused := p.refused[name]; {
	case refused:
		return said, ledger.NoRoom
	case verdict.Reason == ledger.NotServed || verdict.Reason == ledger.NotReported:
		return "", verdict.Reason
	case p.nodes.Away(name) != "":
		return p.nodes.Away(name), ledger.NodeNotReady
	case verdict.Reason == ledger.NodeNotReady:
		return p.notReady(ctx, name), verdict.Reason
	case verdict.Fits():
		return p.unaligned(node, choices[0].Pool), verdict.Reason
	default:
		return node.Explain(r).Message(quantity.Bytes), verdict.Reason
	}
}

// notReady adds the message of the node's agent.
func (p *placing) notReady(ctx context.Context, name string) string {
	report := &v1alpha1.StorageNode{}
	if err := p.client.Get(ctx, types.NamespacedName{Name: name}, report); err == nil {
		if c := meta.FindStatusCondition(report.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Message != "" {
			return "is not ready: " + c.Message
		}
	}
	return "is not ready"
}

func (p *placing) notServed() string {
	switch {
	case len(p.ledger.NodeNames()) == 0:
		return "no node has reported its pools yet: is the berth-agent DaemonSet running?"
	case len(p.request.Topology.Allowed) == 1:
		return fmt.Sprintf("node %s: has no pool of PoolClass %q", p.request.Topology.Allowed[0], p.request.PoolClass)
	default:
		return fmt.Sprintf("no node that may hold the volume has a pool of PoolClass %q", p.request.PoolClass)
	}
}
