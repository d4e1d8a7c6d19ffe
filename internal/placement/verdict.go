package placement

import (
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/api/v1alpha1"
)

// verdict is why one node is not chosen.
type verdict struct {
	reason  Reason
	node    string
	message string
}

type verdicts []verdict

// named is how many nodes a message spells out.
const named = 3

func (r Request) fits(node string, pool *v1alpha1.Pool, free int64) verdict {
	size := RoundUp(r.Capacity, pool)
	switch {
	case pool.Health != v1alpha1.PoolHealthy:
		return verdict{NoSpace, node, fmt.Sprintf("%s is %s%s", poolName(pool), strings.ToLower(string(pool.Health)), suffix(pool.Message))}
	case size > free:
		return verdict{NoSpace, node, fmt.Sprintf("%s has %s free, %s asked", poolName(pool), Bytes(max(free, 0)), Bytes(r.Capacity))}
	case r.Limit > 0 && size > r.Limit:
		return verdict{Unaligned, node, fmt.Sprintf("%s carves multiples of %s: %s would become %s, over the limit of %s",
			poolName(pool), Bytes(pool.AllocationUnit.Value()), Bytes(r.Capacity), Bytes(size), Bytes(r.Limit))}
	}
	return verdict{reason: Placed}
}

// decision explains why no node was chosen: the class first, then node by node.
func (all verdicts) decision(r Request, nodes []Node) Decision {
	served := slices.DeleteFunc(slices.Clone(all), func(v verdict) bool { return v.reason == NotServed })
	if len(served) == 0 {
		return Decision{Reason: NotServed, Message: r.notServed(nodes)}
	}
	reason := NoSpace
	if !slices.ContainsFunc(served, func(v verdict) bool { return v.reason != Unaligned }) {
		reason = Unaligned
	}
	slices.SortFunc(served, func(a, b verdict) int { return strings.Compare(a.node, b.node) })
	var parts []string
	for _, v := range served[:min(len(served), named)] {
		parts = append(parts, fmt.Sprintf("node %s: %s", v.node, v.message))
	}
	if more := len(served) - named; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more nodes", more))
	}
	return Decision{Reason: reason, Message: strings.Join(parts, "; ")}
}

func (r Request) notServed(nodes []Node) string {
	switch {
	case len(nodes) == 0:
		return "no node has reported its pools yet: is the berth-agent DaemonSet running?"
	case len(r.Allowed) == 1:
		return fmt.Sprintf("node %s: has no pool of PoolClass %q", r.Allowed[0], r.PoolClass)
	default:
		return fmt.Sprintf("no node that may hold the volume has a pool of PoolClass %q", r.PoolClass)
	}
}

func poolName(pool *v1alpha1.Pool) string {
	if pool.Provisioner == v1alpha1.ProvisionerLVM {
		return "volume group " + pool.Name
	}
	return "pool " + pool.Name
}

func suffix(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}
