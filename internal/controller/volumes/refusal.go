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

// unusable is the error for a request that no node can meet, whatever it has.
func (a *attempt) unusable(ctx context.Context, v ledger.Verdict) error {
	if v.Reason != ledger.UnknownClass {
		return fail(provision.ErrUnavailable, "%s", v.Reason.Message())
	}
	if err := a.mustExist(ctx, a.request.PoolClass); err != nil {
		return err
	}
	return fail(provision.ErrUnavailable, "PoolClass %q is not taken in yet", a.request.PoolClass)
}

// mustExist is nil for a class that exists. One that the cache lacks may have
// been made a moment ago, so the API server is asked before it is refused.
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
func (a *attempt) unaligned(node *ledger.Node, pool string) string {
	limit := a.request.Size.Limit
	p, known := node.Pool(pool)
	if limit == 0 || !known {
		return ""
	}
	size := (a.bytes + p.Unit - 1) / p.Unit * p.Unit
	if size <= limit {
		return ""
	}
	return fmt.Sprintf("pool %s carves multiples of %s: %s would become %s, over the limit of %s", pool,
		quantity.Bytes(p.Unit), quantity.Bytes(a.bytes), quantity.Bytes(size), quantity.Bytes(limit))
}

// unplaceable says of the first nodes that serve the class why they do not take
// the volume.
func (a *attempt) unplaceable(ctx context.Context, r *ledger.Request, nodes []string) error {
	var told []string
	served, unaligned := 0, 0
	for _, name := range nodes {
		message, reason := a.refusal(ctx, r, name)
		if reason == ledger.NotServed || reason == ledger.NotReported {
			continue
		}
		if served++; served <= named {
			told = append(told, fmt.Sprintf("node %s: %s", name, message))
		}
		if reason == ledger.Fits {
			unaligned++
		}
	}
	if more := served - named; more > 0 {
		told = append(told, fmt.Sprintf("and %d more nodes", more))
	}
	switch {
	case served == 0:
		return fail(ErrUnplaceable, "%s", a.notServed())
	case served == unaligned:
		return fail(ErrOutOfRange, "%s", strings.Join(told, "; "))
	default:
		return fail(ErrUnplaceable, "%s", strings.Join(told, "; "))
	}
}

// refusal is why a node does not take the volume. The reason is Fits where only
// the limit stands against it.
func (a *attempt) refusal(ctx context.Context, r *ledger.Request, name string) (message string, reason ledger.Reason) {
	node := a.ledger.Node(name)
	choices, verdict := node.Place(r, nil)
	switch said, refused := a.refused[name]; {
	case refused:
		return said, ledger.NoRoom
	case verdict.Reason == ledger.NotServed || verdict.Reason == ledger.NotReported:
		return "", verdict.Reason
	case a.nodes.Away(name) != "":
		return a.nodes.Away(name), ledger.NodeNotReady
	case verdict.Reason == ledger.NodeNotReady:
		return a.notReady(ctx, name), verdict.Reason
	case verdict.Fits():
		return a.unaligned(node, choices[0].Pool), verdict.Reason
	default:
		return node.Explain(r).Message(quantity.Bytes), verdict.Reason
	}
}

// notReady adds what the node's agent says itself.
func (a *attempt) notReady(ctx context.Context, name string) string {
	report := &v1alpha1.StorageNode{}
	if err := a.client.Get(ctx, types.NamespacedName{Name: name}, report); err == nil {
		if c := meta.FindStatusCondition(report.Status.Conditions, "Ready"); c != nil && c.Message != "" {
			return "is not ready: " + c.Message
		}
	}
	return "is not ready"
}

func (a *attempt) notServed() string {
	switch {
	case len(a.ledger.NodeNames()) == 0:
		return "no node has reported its pools yet: is the berth-agent DaemonSet running?"
	case len(a.request.Topology.Allowed) == 1:
		return fmt.Sprintf("node %s: has no pool of PoolClass %q", a.request.Topology.Allowed[0], a.request.PoolClass)
	default:
		return fmt.Sprintf("no node that may hold the volume has a pool of PoolClass %q", a.request.PoolClass)
	}
}
