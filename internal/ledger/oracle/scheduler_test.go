package oracle

import (
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
	choices []ledger.Choice
	stage   int
	// also is another node for which the pod holds room, as with the extender; may be empty.
	also string
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
			demands = append(demands, demand(c))
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
	q, strategy := w.question(p, demands), ledger.Strategies[int(c)%len(ledger.Strategies)]
	var fitting []string
	for _, n := range w.nodes {
		q.Node = n.name
		verdict, err := s.asks(q, strategy)
		if err != nil {
			return err
		}
		if verdict.Fits() && (selected == "" || selected == n.name) {
			fitting = append(fitting, n.name)
		}
	}
	if len(fitting) == 0 {
		return nil
	}
	x := &cycle{pod: p}
	if c%4 == 3 && len(fitting) > 1 {
		x.also = fitting[int(c/2+1)%len(fitting)]
		q.Node = x.also
		w.trace("the pod %s also holds room for %s", p.UID, x.also)
		if _, _, err := s.reserves(q, strategy); err != nil {
			return err
		}
	}
	q.Node = fitting[int(c/2)%len(fitting)]
	choices, verdict, err := s.reserves(q, strategy)
	if err != nil || !verdict.Fits() { // what it holds for the other node may be in the way
		w.gives(s, x)
		return err
	}
	w.trace("the pod %s is reserved on %s: %v", p.UID, q.Node, choices)
	if len(nodesOf(choices)) > 1 {
		w.trace("  with standbys")
	}
	x.node, x.choices = q.Node, choices
	s.cycles = append(s.cycles, x)
	p.cycle = true
	return nil
}

// question is what a pod asks. Those of its claims that have their Volume are siblings of the others, and
// every fifth pod cannot run everywhere.
func (w *world) question(p *pod, demands []ledger.Demand) Question {
	q := Question{Pod: p.UID, Demands: demands}
	for _, uid := range p.claims {
		if !slices.ContainsFunc(demands, func(d ledger.Demand) bool { return d.Owner == ledger.Claim(uid) }) {
			q.Siblings = append(q.Siblings, ledger.Claim(uid))
		}
	}
	if number(p.UID)%5 == 0 {
		q.Among = []string{"n1", "n3"}
	}
	return q
}

// gives gives back what a pod holds, for all nodes.
func (w *world) gives(s *scheduler, x *cycle) {
	for _, node := range []string{x.node, x.also} {
		if node != "" {
			s.ledger.Unreserve(x.pod.UID, node)
			s.model.Unreserve(x.pod.UID, node)
		}
	}
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
		if choice.Owner.Kind != ledger.ByClaim || choice.Node != x.node || c != nil && c.Bound {
			continue
		}
		if c == nil {
			return false
		}
		replicas := x.replicas(choice.Owner, demand(c.ClaimObject).Yields)
		v := w.volumes["pvc-"+c.UID]
		if v == nil {
			w.volumeComes(c, replicas...)
			continue
		}
		if slices.ContainsFunc(v.Replicas, func(r ledger.Replica) bool {
			return r.Node == x.node && r.State != ledger.Refused && r.State != ledger.Gone
		}) {
			w.completes(v, replicas)
			continue
		}
		if slices.ContainsFunc(v.Replicas, func(r ledger.Replica) bool { return r.Actual > 0 }) {
			return false
		}
		w.trace("the Volume %s moves to %s/%s", v.Name, x.node, choice.Pool)
		v.Replicas = replicas
		w.emitVolume(v)
	}
	return true
}

// completes gives a Volume the replicas that it lacks.
func (w *world) completes(v *ledger.VolumeObject, replicas []ledger.Replica) {
	before := len(v.Replicas)
	for _, r := range replicas {
		if !slices.ContainsFunc(v.Replicas, func(x ledger.Replica) bool { return x.Node == r.Node }) {
			v.Replicas = append(v.Replicas, r)
		}
	}
	if len(v.Replicas) > before {
		w.trace("the Volume %s gets its other replicas: %v", v.Name, v.Replicas[before:])
		w.emitVolume(v)
	}
}

// replicas are those of one volume, as they were reserved.
func (x *cycle) replicas(o ledger.Owner, yields bool) []ledger.Replica {
	var replicas []ledger.Replica
	for _, c := range x.choices {
		if c.Owner == o {
			replicas = append(replicas, ledger.Replica{Node: c.Node, Pool: c.Pool, Yields: yields && c.Node != x.node})
		}
	}
	return replicas
}

// accepted is whether the agents have carved the volumes that the pod needs; it
// then tells the claims their node.
func (w *world) accepted(x *cycle) (done, failed bool) {
	for _, choice := range x.choices {
		v := w.volumes["pvc-"+choice.Owner.ID]
		if choice.Owner.Kind != ledger.ByClaim || choice.Node != x.node || w.claims[choice.Owner.ID] != nil && w.claims[choice.Owner.ID].Bound {
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
	w.gives(s, x)
	w.ends(s, x)
	return s.check()
}

func (w *world) ends(s *scheduler, x *cycle) {
	x.pod.cycle = false
	s.cycles = slices.DeleteFunc(s.cycles, func(y *cycle) bool { return x == y })
}
