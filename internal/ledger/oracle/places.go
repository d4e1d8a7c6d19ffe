package oracle

import (
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/internal/ledger"
)

// Question is whether a pod can run on a node with all replicas of its volumes.
type Question struct {
	Node, Pod string
	Siblings  []ledger.Owner
	Among     []string // nil is all
	Demands   []ledger.Demand
}

// Places tries every way to give each demand a set of nodes.
//
//   - A set has as many nodes as the demand has replicas, the pod's own node among them.
//   - Of two sets, one is part of the other.
//   - No node outside of a set has more of the siblings than one within, and none anywhere has more than
//     the pod's own node.
//   - On each node, everything that has a replica there fits together.
func (m *Model) Places(q Question) bool {
	if !m.Fits(q.Node, q.Pod, q.Demands...) {
		return false
	}
	if !slices.ContainsFunc(q.Demands, func(d ledger.Demand) bool { return d.Factor > 1 }) {
		return true
	}
	s := newSets(m, q)
	return s.runs() && s.try(0)
}

// newSets begins a search.
func newSets(m *Model, q Question) *sets {
	s := &sets{m: m, q: q, siblings: m.siblings(q.Siblings), answers: map[string]bool{}}
	s.nodes = sortedKeys(m.reports)
	for _, node := range sortedKeys(s.siblings) {
		if !slices.Contains(s.nodes, node) {
			s.nodes = append(s.nodes, node)
		}
	}
	return s
}

// runs is whether the pod's own node has as many of the siblings as any.
func (s *sets) runs() bool {
	return !slices.ContainsFunc(s.nodes, func(node string) bool { return s.siblings[node] > s.siblings[s.q.Node] })
}

// Legal returns an error if choices are no answer to the question.
func (m *Model) Legal(q Question, choices []ledger.Choice) error {
	s, here, pools := newSets(m, q), map[string][]ledger.Demand{}, map[string][]string{}
	several := false
	for _, d := range q.Demands {
		set := 0
		for _, c := range choices {
			if c.Owner == d.Owner {
				set |= 1 << slices.Index(s.nodes, c.Node)
				here[c.Node], pools[c.Node] = append(here[c.Node], d), append(pools[c.Node], c.Pool)
			}
		}
		several = several || d.Factor > 1
		if !s.legal(set, max(d.Factor, 1)) || s.crosses(set) {
			return fmt.Errorf("the nodes of %v are not those of a legal placement: %v", d.Owner, choices)
		}
		s.chosen = append(s.chosen, set)
	}
	if several && !s.runs() {
		return fmt.Errorf("the pod's other volumes are elsewhere: %v", choices)
	}
	for node := range here {
		standby := node != q.Node
		if !m.takes(node, q.Pod, standby, here[node], pools[node]) || standby && !s.open(node, here[node]) {
			return fmt.Errorf("node %s cannot take what was chosen for it: %v", node, choices)
		}
	}
	return nil
}

// crosses is whether neither of a set and an earlier one is part of the other.
func (s *sets) crosses(set int) bool {
	return slices.ContainsFunc(s.chosen, func(other int) bool { return set&other != set && set&other != other })
}

// sets are the nodes of each demand, as bits.
type sets struct {
	m        *Model
	q        Question
	nodes    []string
	siblings map[string]int
	chosen   []int
	answers  map[string]bool
}

func (s *sets) try(i int) bool {
	if i == len(s.q.Demands) {
		return s.fit()
	}
	for set := range 1 << len(s.nodes) {
		if !s.legal(set, max(s.q.Demands[i].Factor, 1)) || s.crosses(set) {
			continue
		}
		s.chosen = append(s.chosen, set)
		if s.try(i + 1) {
			return true
		}
		s.chosen = s.chosen[:i]
	}
	return false
}

// legal is whether a set may be that of a demand with so many replicas.
func (s *sets) legal(set, factor int) bool {
	size := 0
	for n, within := range s.nodes {
		if set&(1<<n) == 0 {
			continue
		}
		size++
		for k, outside := range s.nodes {
			if factor > 1 && set&(1<<k) == 0 && s.siblings[outside] > s.siblings[within] {
				return false
			}
		}
	}
	own := slices.Index(s.nodes, s.q.Node)
	return size == factor && set&(1<<own) != 0
}

// fit is whether each standby fits with all that it has to take.
func (s *sets) fit() bool {
	for n, node := range s.nodes {
		var here []ledger.Demand
		names := []string{node}
		for i, d := range s.q.Demands {
			if s.chosen[i]&(1<<n) != 0 {
				here = append(here, d)
				names = append(names, d.Owner.ID)
			}
		}
		if node == s.q.Node || len(here) == 0 {
			continue
		}
		key := strings.Join(names, ",")
		answer, known := s.answers[key]
		if !known {
			answer = s.open(node, here) && s.m.takes(node, s.q.Pod, true, here, nil)
			s.answers[key] = answer
		}
		if !answer {
			return false
		}
	}
	return true
}

// open is whether the pod could run on the node, or has all of these there already.
func (s *sets) open(node string, here []ledger.Demand) bool {
	return s.q.Among == nil || slices.Contains(s.q.Among, node) ||
		!slices.ContainsFunc(here, func(d ledger.Demand) bool { return !s.m.placedOn(d.Owner, node) })
}
