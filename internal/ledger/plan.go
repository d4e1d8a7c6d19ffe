package ledger

import (
	"cmp"
	"maps"
	"slices"
)

// tier is a part of a request that every standby up to a number must take whole: the volumes
// that have at least so many replicas.
type tier struct {
	// until is counted as the replicas are: the one on the pod's own node is the first.
	until   int
	request *Request
}

// kin are the nodes of a pod's other volumes.
type kin struct {
	// count is how many of them have a replica on a node.
	count map[string]int
	// ranks are these counts, the highest first.
	ranks []int
}

// rank is how many of the pod's other volumes the node of the i-th replica, counted from 1, must
// have a replica of.
func (k kin) rank(i int) int {
	if i <= len(k.ranks) {
		return k.ranks[i-1]
	}
	return 0
}

// layTiers works out what standbys have to take.
func (r *Request) layTiers() {
	var factors []int
	for i := range r.items {
		if f := r.items[i].Factor; f > 1 && !slices.Contains(factors, f) {
			factors = append(factors, f)
		}
	}
	if len(factors) == 0 {
		return
	}
	slices.Sort(factors)
	r.options.Among = slices.Clone(r.options.Among) // an empty list stays one that is not nil
	slices.Sort(r.options.Among)
	for _, f := range factors {
		part := &Request{options: r.options, verdict: r.verdict}
		for _, it := range r.items {
			if it.Factor >= f {
				it.Pool, it.Beside, it.yields = "", nil, it.Yields
				part.items = append(part.items, it)
			}
		}
		r.tiers = append(r.tiers, tier{f, part})
	}
}

// Plan finds the nodes of all replicas of a request's volumes, for every node that the pod may run
// on. It never changes, and needs no lock.
//
// The nodes of a plan are a sequence, which begins with the pod's own node. A volume of factor n is
// on the first n of them. So each volume's nodes include those of every volume with fewer replicas,
// and the pod can move to wherever its volume with the fewest replicas is.
//
// The pod's other volumes, its siblings, have their nodes already. A node that has more of them comes
// before one that has fewer.
//
// The search is exact: if there is such a sequence it finds one. Among several it takes, for one
// replica after the other, the node that is best by
//
//   - how many of the volumes have their replica there by now;
//   - how few replicas are in its failure domain;
//   - how many of the volumes have room held there for this pod's node;
//   - the strategy's score;
//   - its name.
type Plan struct {
	request *Request
	nodes   map[string]*Node
	names   []string
	// stands is what each node says to each tier, in the order of the names.
	stands [][]stand
}

// stand is what a node says to a tier.
type stand struct {
	reason Reason
	// absent is how many of the volumes have no replica on the node.
	absent int
	score  int64
}

// Plan works out what each node says to the request's standbys. For a request that has none a Plan
// answers as the Node does.
func (s Snapshot) Plan(r *Request) *Plan { return newPlan(s.nodes, r) }

func newPlan(nodes map[string]*Node, r *Request) *Plan {
	p := &Plan{request: r, nodes: nodes}
	if len(r.tiers) == 0 {
		return p
	}
	p.names = slices.Sorted(maps.Keys(nodes))
	for _, t := range r.tiers {
		row := make([]stand, len(p.names))
		for i, name := range p.names {
			row[i] = p.ask(nodes[name], t.request)
		}
		p.stands = append(p.stands, row)
	}
	return p
}

// ask asks a node whether it can take a tier.
func (p *Plan) ask(n *Node, part *Request) stand {
	s := stand{absent: part.absent(n.name)}
	if among := p.request.options.Among; s.absent > 0 && among != nil {
		if _, open := slices.BinarySearch(among, n.name); !open {
			s.reason = ClosedToPod
			return s
		}
	}
	var memory scratch
	search := n.packing(part, &memory)
	if s.reason, _ = search.run(); s.reason == Fits {
		s.score = search.total()
	}
	return s
}

// absent is how many of the items have no replica on the node.
func (r *Request) absent(node string) int {
	absent := 0
	for i := range r.items {
		if has := r.items[i].on(node); has == nil || !has.fixed || has.owner.Kind != ByVolume {
			absent++
		}
	}
	return absent
}

// Fit is whether all replicas of all volumes have a place if the pod runs on the node. The node may
// be another one than the plan's own of that name, as it would be after an eviction.
func (p *Plan) Fit(n *Node) Verdict {
	verdict := n.Fit(p.request)
	if !verdict.Fits() || len(p.request.tiers) == 0 {
		return verdict
	}
	return p.lineUp(n.name).verdict()
}

// Place is Fit that also returns the place of every replica: first those on the node itself, then
// those of one standby after the other.
func (p *Plan) Place(n *Node) ([]Choice, Verdict) {
	choices, verdict := n.Place(p.request, nil)
	if !verdict.Fits() || len(p.request.tiers) == 0 {
		return choices, verdict
	}
	line := p.lineUp(n.name)
	if verdict := line.verdict(); !verdict.Fits() {
		return nil, verdict
	}
	line.improve()
	for i, at := range line.taken {
		choices, _ = p.nodes[p.names[at]].Place(p.request.tiers[line.tier(i)].request, choices)
	}
	return choices, Verdict{}
}

// ownShare of the score is that of the pod's own node, in percent.
const ownShare = 75

// Score says how well the replicas would lie if the pod ran on the node, from 0 to MaxScore. The node
// itself counts three quarters, and all standbys together one. A standby in the failure domain of
// another replica counts as the worst. Volumes without standbys score as they do on the node.
func (p *Plan) Score(n *Node) int64 {
	own := n.Score(p.request)
	if len(p.request.tiers) == 0 || !n.Fit(p.request).Fits() {
		return own
	}
	line := p.lineUp(n.name)
	if line.short >= 0 {
		return 0
	}
	line.improve()
	var sum int64
	for i, at := range line.taken {
		if line.crowd(i, at) == 0 {
			sum += p.stands[line.tier(i)][at].score
		}
	}
	return (own*ownShare + sum/int64(len(line.taken))*(100-ownShare)) / 100
}

// better compares two nodes for standby i.
func (l *line) better(i, a, b int) bool {
	row := l.stands[l.tier(i)]
	return cmp.Or(
		cmp.Compare(row[a].absent, row[b].absent),
		cmp.Compare(l.crowd(i, a), l.crowd(i, b)),
		cmp.Compare(l.unheld(i, a), l.unheld(i, b)),
		cmp.Compare(row[b].score, row[a].score),
		cmp.Compare(l.names[a], l.names[b]),
	) < 0
}
