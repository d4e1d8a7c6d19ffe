package ledger

// Choice is the place that was chosen for one replica of an owner's volume.
type Choice struct {
	Owner      Owner
	Node, Pool string
}

// Fit is whether all demands of the request fit on the node together. It
// allocates nothing, unless the owners hold room on this very node already. It says
// nothing of other nodes: for volumes with several replicas ask a Plan.
func (n *Node) Fit(r *Request) Verdict {
	var s scratch
	p := n.packing(r, &s)
	return r.answer(p.run())
}

// Place is Fit that also says which pool each demand gets. It appends to to.
func (n *Node) Place(r *Request, to []Choice) ([]Choice, Verdict) {
	var s scratch
	p := n.packing(r, &s)
	verdict := r.answer(p.run())
	if !verdict.Fits() {
		return to, verdict
	}
	for k := range r.items {
		to = append(to, Choice{r.items[k].Owner, n.name, p.node.books[p.chosen[k]].Name})
	}
	return to, verdict
}

// answer makes a search's outcome a verdict. A reason that keeps the demands from
// fitting on any node comes first. The search itself deals in numbers only:
// returning an owner out of it would move its memory to the heap.
func (r *Request) answer(reason Reason, at int) Verdict {
	switch {
	case !r.verdict.Fits():
		return r.verdict
	case at < 0:
		return Verdict{Reason: reason}
	default:
		return Verdict{reason, r.items[at].Owner}
	}
}

// packing sets a search up. It returns the search by value, and only this function
// sets its slices. Otherwise the search would not stay on the caller's stack.
func (n *Node) packing(r *Request, s *scratch) packing {
	switch {
	case !r.verdict.Fits():
		return packing{refused: r.verdict.Reason}
	case len(r.items) == 0:
		return packing{}
	case n == nil || !n.reported:
		return packing{refused: NotReported}
	case !n.ready:
		return packing{refused: NodeNotReady}
	}
	n = r.cleared(n)
	items, pools := len(r.items), len(n.books)
	p := packing{node: n, items: r.items, options: &r.options}
	if items > len(s.chosen) || pools > len(s.use) || items*pools > len(s.need) {
		p.need, p.use, p.top = make([]int64, items*pools), make([]int64, pools), make([]int64, pools)
		p.least, p.chosen = make([]int64, items+1), make([]int, items)
	} else {
		p.need, p.use, p.top = s.need[:items*pools], s.use[:pools], s.top[:pools]
		p.least, p.chosen = s.least[:items+1], s.chosen[:items]
	}
	return p
}

// run finds a way to place all items, or says why there is none and which item is
// the reason; -1 is all of them.
func (p *packing) run() (reason Reason, at int) {
	if len(p.items) == 0 { // a search that is refused has none
		return p.refused, -1
	}
	if reason, at := p.prepare(); reason != Fits {
		return reason, at
	}
	switch {
	case p.search(0, p.space(), mask{}):
		return Fits, -1
	case p.gaveUp:
		return TooManyWays, -1
	default:
		return NotTogether, -1
	}
}

// cleared is the node without the holds that the request's own owners have there: a
// reservation must never starve its own pod.
func (r *Request) cleared(n *Node) *Node {
	var own []Owner
	for i := range r.items {
		if has := r.items[i].on(n.name); has != nil && !has.fixed {
			own = append(own, has.owner)
		}
	}
	if own == nil {
		return n
	}
	return n.Without(own...)
}

// MaxScore is the best score.
const MaxScore = 100

// Score says how well the demands would lie on the node, from 0 to MaxScore. The
// strategy scores pools that are shared. A whole device scores the share of the
// disk that is asked for. Demands that do not fit score 0.
func (n *Node) Score(r *Request) int64 {
	var s scratch
	p := n.packing(r, &s)
	if reason, _ := p.run(); reason != Fits {
		return 0
	}
	return p.total()
}

// total is the score of the places that were found.
func (p *packing) total() int64 {
	var sum int64
	for k := range p.items {
		sum += p.score(k)
	}
	return sum / max(int64(len(p.items)), 1)
}

func (p *packing) score(k int) int64 {
	i := p.chosen[k]
	b := p.node.books[i]
	if b.Kind == nil {
		return 0
	}
	if b.Kind.Whole() {
		return share(p.items[k].Bytes, b.Total)
	}
	limit := b.limit(p.items[k].id)
	return p.options.strategy().Score(limit-p.use[i], limit)
}

// share is part of whole in percent, between 0 and MaxScore.
func share(part, whole int64) int64 {
	if whole <= 0 || part <= 0 {
		return 0
	}
	if whole > unbounded/MaxScore {
		part, whole = part/MaxScore, whole/MaxScore
	}
	return min(part*MaxScore/whole, MaxScore)
}
