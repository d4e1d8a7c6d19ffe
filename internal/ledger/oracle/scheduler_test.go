package oracle

import (
	"fmt"
	"slices"

	"berth.dev/berth/internal/ledger"
)

// scheduler is one process with a ledger, and the model that watches over it.
type scheduler struct {
	ledger *ledger.Ledger
	model  *Model
	cursor [kinds]int
	cycles []*cycle
}

// cycle is a pod on its way from Reserve to bound.
type cycle struct {
	pod     *pod
	node    string
	demands []ledger.Demand
	choices []ledger.Choice
	stage   int
}

func newScheduler() *scheduler { return &scheduler{ledger: ledger.New(), model: New()} }

func (s *scheduler) check() error { return s.model.Compare(s.ledger) }

// demandsOf are the demands of a scheduler for a pod, as far as it has seen them:
// its unbound claims and its inline volumes.
func (s *scheduler) demandsOf(p *pod) (demands []ledger.Demand, node string, ok bool) {
	for _, uid := range p.claims {
		c, seen := s.model.claims[uid]
		if !seen {
			return nil, "", false
		}
		if c.SelectedNode != "" && !c.Bound {
			node = c.SelectedNode
		}
		if !c.Bound {
			demands = append(demands, ledger.Demand{Owner: ledger.Claim(uid), Class: c.Class, Bytes: c.Requested})
		}
	}
	for _, v := range p.Inline {
		demands = append(demands, ledger.Demand{Owner: ledger.Inline(p.UID, v.Name), Class: v.Class, Bytes: v.Bytes, Namespace: p.Namespace})
	}
	return demands, node, true
}

// schedules runs one pod from Filter to Reserve.
func (w *world) schedules(a, b, c byte) error {
	s := w.schedulers[int(a)%len(w.schedulers)]
	p, found := choose(w.pods, b, func(p *pod) bool { return p.Node == "" && !p.cycle })
	if !found {
		return nil
	}
	for i := 0; c%8 != 0 && i < 4; i++ { // mostly it has seen the claims
		if err := w.delivers(a, byte(claims), 255); err != nil {
			return err
		}
	}
	demands, selected, ok := s.demandsOf(p)
	if !ok {
		return nil
	}
	r, _ := s.ledger.Request(ledger.RequestOptions{Pod: p.UID, Strategy: ledger.Strategies[int(c)%len(ledger.Strategies)]}, demands...)
	var fitting []string
	for _, n := range w.nodes {
		fits, want := s.ledger.Node(n.name).Fit(r), s.model.Fits(n.name, p.UID, demands...)
		if fits.Fits() != (want && s.ledger.Synced() || len(demands) == 0 && s.ledger.Synced()) {
			return fmt.Errorf("the pod %s on %s: %v (%v), want fits %t; demands %v", p.UID, n.name, fits.Reason, fits.Owner, want, demands)
		}
		if fits.Fits() && (selected == "" || selected == n.name) {
			fitting = append(fitting, n.name)
		}
	}
	if len(fitting) == 0 {
		return nil
	}
	node := fitting[int(c/2)%len(fitting)]
	choices, verdict := s.ledger.Reserve(node, r)
	if !verdict.Fits() {
		return fmt.Errorf("the pod %s fits %s and cannot be reserved there: %v", p.UID, node, verdict)
	}
	w.trace("the pod %s is reserved on %s: %v", p.UID, node, choices)
	s.model.Reserve(p.UID, node, demands, choices)
	s.cycles = append(s.cycles, &cycle{p, node, demands, choices, 0})
	p.cycle = true
	return s.check()
}

// advances takes one pod some steps further, or lets its binding fail.
func (w *world) advances(a, b, c byte) error {
	s := w.schedulers[int(a)%len(w.schedulers)]
	if len(s.cycles) == 0 {
		return nil
	}
	x := s.cycles[int(b)%len(s.cycles)]
	if x.pod.gone || c%16 == 0 && x.stage < 3 && !w.calm {
		return w.fails(s, x)
	}
	for range c/16%4 + 1 {
		if c%2 == 0 {
			w.helps(x, b)
		}
		more, err := w.step(s, x)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// helps lets agent and provisioner do at once the work that the pod waits for.
func (w *world) helps(x *cycle, b byte) {
	switch x.stage {
	case 1:
		w.agentWorks(byte(slices.Index(w.nodes, w.node(x.node))), b, 0)
	case 2:
		for i := range x.pod.claims {
			w.provisions(b+byte(i), b, 0)
		}
	}
}

// step takes a pod one step further; more is whether it may go on.
func (w *world) step(s *scheduler, x *cycle) (more bool, err error) {
	switch x.stage {
	case 0: // PreBind
		if !w.places(x) {
			return false, w.fails(s, x)
		}
	case 1: // acceptance
		switch done, failed := w.accepted(x); {
		case failed:
			return false, w.fails(s, x)
		case !done:
			return false, nil
		}
	case 2: // VolumeBinding waits for the claims
		for _, uid := range x.pod.claims {
			if y := w.claims[uid]; y == nil || !y.Bound {
				return false, nil
			}
		}
	default:
		w.trace("the pod %s is bound to %s", x.pod.UID, x.node)
		x.pod.Node = x.node
		w.emitPod(x.pod)
		w.ends(s, x)
		return false, nil
	}
	x.stage++
	return true, nil
}

// places makes the Volumes of a pod's claims, or moves those that have nothing on
// disk to the pod's node.
func (w *world) places(x *cycle) bool {
	for _, choice := range x.choices {
		c := w.claims[choice.Owner.ID]
		if choice.Owner.Kind != ledger.ByClaim || c != nil && c.Bound {
			continue
		}
		if c == nil {
			return false
		}
		v := w.volumes["pvc-"+c.UID]
		if v == nil {
			w.volumeComes(c, x.node, choice.Pool)
			continue
		}
		if slices.ContainsFunc(v.Replicas, func(r ledger.Replica) bool {
			return r.Node == x.node && r.State != ledger.Refused && r.State != ledger.Gone
		}) {
			continue
		}
		if slices.ContainsFunc(v.Replicas, func(r ledger.Replica) bool { return r.Actual > 0 }) {
			return false
		}
		w.trace("the Volume %s moves to %s/%s", v.Name, x.node, choice.Pool)
		v.Replicas = []ledger.Replica{{Node: x.node, Pool: choice.Pool}}
		w.emitVolume(v)
	}
	return true
}

// accepted is whether the agents have carved the volumes that the pod needs; it
// then tells the claims their node.
func (w *world) accepted(x *cycle) (done, failed bool) {
	for _, choice := range x.choices {
		v := w.volumes["pvc-"+choice.Owner.ID]
		if choice.Owner.Kind != ledger.ByClaim || w.claims[choice.Owner.ID] != nil && w.claims[choice.Owner.ID].Bound {
			continue
		}
		if v == nil {
			return false, true
		}
		for _, r := range v.Replicas {
			if r.Node == x.node && r.State == ledger.Pending {
				return false, false
			}
			if r.Node == x.node && r.State != ledger.Ready {
				return false, true
			}
		}
	}
	for _, uid := range x.pod.claims {
		if c := w.claims[uid]; c == nil {
			return false, true
		} else if !c.Bound && c.SelectedNode != x.node {
			c.SelectedNode = x.node
			w.emitClaim(c)
		}
	}
	return true, false
}

func (w *world) fails(s *scheduler, x *cycle) error {
	w.trace("the binding of %s to %s fails", x.pod.UID, x.node)
	s.ledger.Unreserve(x.pod.UID, x.node)
	s.model.Unreserve(x.pod.UID, x.node)
	w.ends(s, x)
	return s.check()
}

func (w *world) ends(s *scheduler, x *cycle) {
	x.pod.cycle = false
	s.cycles = slices.DeleteFunc(s.cycles, func(y *cycle) bool { return x == y })
}
