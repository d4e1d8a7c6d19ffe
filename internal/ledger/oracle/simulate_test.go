package oracle

import "fmt"

// simulates reserves and unreserves, as a gang does that tries placements out. That
// may change nothing. It leaves out owners that are promised to a node: their pool
// may change by it.
func (w *world) simulates(a, b, _ byte) error {
	s := w.schedulers[int(a)%len(w.schedulers)]
	p, found := choose(w.pods, b, func(p *pod) bool { return p.Node == "" && !p.cycle })
	if !found {
		return nil
	}
	demands, _, ok := s.demandsOf(p)
	for _, d := range demands {
		ok = ok && s.model.promised(d.Owner) == ""
	}
	if !ok {
		return nil
	}
	before, _ := dump(s.ledger)
	for _, n := range w.nodes {
		if _, verdict := s.ledger.Reserve(n.name, s.request(w.question(p, demands), nil)); verdict.Fits() {
			s.ledger.Unreserve(p.UID, n.name)
		}
	}
	after, _ := dump(s.ledger)
	if err := sameFacts(before, after); err != nil {
		return fmt.Errorf("simulating %s left something behind: %w", p.UID, err)
	}
	return s.check()
}
