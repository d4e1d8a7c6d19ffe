package oracle

import (
	"maps"

	"berth.dev/berth/internal/ledger"
)

// Hold is the room that pods hold for an owner on a node.
type Hold struct {
	Owner      ledger.Owner
	Node, Pool string
	Class      string
	Bytes      int64
	// Holders are the pods, each with the node that it is to run on, and whether it was seen
	// bound there.
	Holders map[Holder]bool
	// StandbyOf are the nodes that it is a standby for.
	StandbyOf map[string]bool
	// Yields is whether it yields as long as it is only a standby.
	Yields bool
}

// Holder is a pod that may run on a node.
type Holder struct{ Pod, Own string }

func newHold(o ledger.Owner, node string) Hold {
	return Hold{Owner: o, Node: node, Holders: map[Holder]bool{}, StandbyOf: map[string]bool{}}
}

// meant is whether a pod that holds the room is to run on the node.
func (h *Hold) meant(node string) bool {
	for x := range h.Holders {
		if x.Own == node {
			return true
		}
	}
	return false
}

// sharedBeside says whether a pod other than this one holds it too.
func (h Hold) sharedBeside(pod string) bool {
	for x := range h.Holders {
		if x.Pod != pod {
			return true
		}
	}
	return false
}

// charges is whether a fact is the hold's.
func (h *Hold) charges(f Fact) bool {
	return f.Owner == h.Owner && f.Node == h.Node && f.Pool == h.Pool
}

// holds are all room that is held.
type holds []Hold

// on is what is held for an owner on a node, or nil.
func (hs holds) on(o ledger.Owner, node string) *Hold {
	for i := range hs {
		if hs[i].Owner == o && hs[i].Node == node {
			return &hs[i]
		}
	}
	return nil
}

// bind notes that a pod was seen bound to a node. It holds nothing for others any more.
func (hs holds) bind(pod, node string) {
	for i := range hs {
		for x := range hs[i].Holders {
			switch {
			case x.Pod != pod:
			case x.Own == node:
				hs[i].Holders[x] = true
			default:
				delete(hs[i].Holders, x)
			}
		}
	}
}

// drop takes a pod from the holders, as far as it was to run on one node or ("") on any.
func (hs holds) drop(pod, node string) {
	for i := range hs {
		maps.DeleteFunc(hs[i].Holders, func(x Holder, _ bool) bool { return x.Pod == pod && (node == "" || x.Own == node) })
	}
}
