package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// StandbyExplanation says why there are not enough nodes for standbys.
type StandbyExplanation struct {
	// Wanted is how many nodes the standbys need, and Found are nodes for a part of them.
	Wanted int
	Found  []string
	// Closest are the nodes that come closest to being another, each with its answer to what the
	// standby has to take. Others counts the rest by reason.
	Closest []Explanation
	Others  map[Reason]int
}

// closest is how many nodes an explanation shows.
const closest = 3

// Explain answers like Fit, for people. The choices are those of all replicas.
func (p *Plan) Explain(n *Node) Explanation {
	x := n.Explain(p.request)
	if !x.Verdict.Fits() || len(p.request.tiers) == 0 {
		return x
	}
	x.Choices, x.Verdict = p.Place(n)
	if !x.Verdict.Fits() {
		x.Standbys = p.lineUp(n.name).explain()
	}
	return x
}

// explain says why the standbys that are short have no node.
func (l *line) explain() *StandbyExplanation {
	tier := l.request.tiers[l.tier(l.short)]
	x := &StandbyExplanation{Wanted: tier.until - 1, Others: map[Reason]int{}}
	if l.verdict().Reason == SiblingsElsewhere {
		x.Found = l.siblingsAt(l.request.kin.rank(1))
		return x
	}
	for _, at := range l.taken {
		x.Found = append(x.Found, l.names[at])
	}
	answers := l.answers(x.Found)
	slices.SortStableFunc(answers, func(a, b Explanation) int { return cmp.Compare(b.Verdict.Reason, a.Verdict.Reason) })
	for i, a := range answers {
		if i >= closest {
			x.Others[a.Verdict.Reason]++
			continue
		}
		if n := l.nodes[a.Node]; n != nil && a.Verdict.Reason > SourceElsewhere { // the pools have more to say
			a = n.Explain(tier.request)
		}
		x.Closest = append(x.Closest, a)
	}
	return x
}

// siblingsAt are the nodes that have a replica of so many of the pod's other volumes.
func (l *line) siblingsAt(count int) []string {
	var nodes []string
	for node, n := range l.request.kin.count {
		if n == count {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// answers are the reasons of the nodes that are not found, in the order of their names.
func (l *line) answers(found []string) []Explanation {
	var answers []Explanation
	add := func(node string, reason Reason) {
		if node != l.own && !slices.Contains(found, node) {
			answers = append(answers, Explanation{Node: node, Verdict: Verdict{Reason: reason}})
		}
	}
	kin, row := l.request.kin, l.stands[l.tier(l.short)]
	for at, name := range l.names {
		if kin.count[name] == kin.rank(l.short+2) {
			add(name, row[at].reason)
		} else {
			add(name, SiblingsElsewhere)
		}
	}
	for _, node := range l.siblingsAt(kin.rank(l.short + 2)) {
		if l.nodes[node] == nil {
			add(node, NotReported)
		}
	}
	return answers
}

// message is for people.
func (x *StandbyExplanation) message(size func(int64) string) string {
	nodes, found := "nodes", "none"
	if x.Wanted == 1 {
		nodes = "node"
	}
	if len(x.Found) > 0 {
		found = strings.Join(x.Found, ", ")
	}
	told := []string{fmt.Sprintf("%d further %s needed for the other replicas, found: %s", x.Wanted, nodes, found)}
	for _, n := range x.Closest {
		told = append(told, fmt.Sprintf("node %s: %s", n.Node, n.Message(size)))
	}
	for reason := TooManyWays; reason > Fits; reason-- {
		if count := x.Others[reason]; count > 0 {
			told = append(told, fmt.Sprintf("%d more: %s", count, reason.Message()))
		}
	}
	return strings.Join(told, "; ")
}
