package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/internal/ledger"
)

// land is a small cluster, and a pod whose volumes may or may not have places in it.
type land struct {
	classes []ledger.Class
	reports []ledger.Report
	volumes []ledger.VolumeObject
	// earlier pods hold room.
	earlier []Question
	asked   Question
}

// builder makes one.
type builder struct{ *rand.Rand }

func (b builder) chance(one int) bool { return b.IntN(one) == 0 }

func someLand(random *rand.Rand) land {
	b := builder{random}
	w := land{classes: []ledger.Class{{Name: "a"}, {Name: "b", Spare: 2}, {Name: "lun"}}}
	b.nodes(&w)
	b.volumes(&w)
	b.pod(&w)
	b.pods(&w)
	return w
}

func (b builder) nodes(w *land) {
	for n := range 2 + b.IntN(4) {
		r := ledger.Report{Node: fmt.Sprintf("n%d", n), Ready: !b.chance(8), Features: features[:1], Domain: []string{"", "x", "y", "z"}[b.IntN(4)]}
		for i := range 1 + b.IntN(3) {
			p := ledger.Pool{Name: fmt.Sprintf("p%d", i), Kind: ledger.Thick, Total: int64(1 + b.IntN(10)), Unit: 1, Classes: []string{"a", "b"}[b.IntN(2):]}
			switch {
			case i == 0 && !b.chance(3):
				p.Kind, p.Total, p.Classes = ledger.Slots, int64(1+b.IntN(4)), []string{"lun"}
			case b.chance(4):
				p.Kind = ledger.Device
			}
			r.Pools = append(r.Pools, p)
		}
		w.reports = append(w.reports, r)
	}
}

// volumes are there already. The first may be that of a claim of the pod, and others its siblings.
func (b builder) volumes(w *land) {
	for i := range b.IntN(4) {
		v := ledger.VolumeObject{Name: fmt.Sprintf("v%d", i), Class: "a", Capacity: int64(1 + b.IntN(3))}
		for k := range 1 + b.IntN(3) {
			r := w.reports[b.IntN(len(w.reports))]
			p := r.Pools[b.IntN(len(r.Pools))]
			if slices.ContainsFunc(v.Replicas, func(x ledger.Replica) bool { return x.Node == r.Node }) {
				continue
			}
			if k == 0 {
				v.Class = p.Classes[0]
			}
			v.Replicas = append(v.Replicas, ledger.Replica{
				Node: r.Node, Pool: p.Name, State: ledger.ReplicaState(b.IntN(4)), Actual: v.Capacity, Yields: k > 0 && b.chance(2),
			})
		}
		switch {
		case i == 0 && b.chance(2):
			v.Claim = "c0"
		case b.chance(2):
			w.asked.Siblings = append(w.asked.Siblings, ledger.Volume(v.Name))
		}
		w.volumes = append(w.volumes, v)
	}
}

// pod is the one that asks.
func (b builder) pod(w *land) {
	w.asked.Pod = "pod"
	if b.chance(4) {
		w.asked.Among = []string{}
		for _, r := range w.reports {
			if !b.chance(3) {
				w.asked.Among = append(w.asked.Among, r.Node)
			}
		}
	}
	factors := [][]int{{2, 2, 3}, {1, 2, 3}, {0, 1, 4}, {2, 3, 4}}[b.IntN(4)]
	for i := range 1 + b.IntN(3) {
		d := ledger.Demand{Owner: ledger.Claim(fmt.Sprintf("c%d", i)), Class: w.classes[b.IntN(3)].Name, Bytes: int64(1 + b.IntN(4)), Factor: factors[b.IntN(3)]}
		d.Yields = d.Class == "lun" && !b.chance(4)
		if b.chance(12) {
			d.Pool = "p1"
		}
		if b.chance(12) {
			d.Feature = features[b.IntN(2)]
		}
		if b.chance(12) {
			d.Beside = source(b.Rand, []ledger.Pool{{Name: "p0"}, {Name: "p1"}})
		}
		w.asked.Demands = append(w.asked.Demands, d)
	}
}

// pods hold room from earlier, the one that asks perhaps, too.
func (b builder) pods(w *land) {
	for i := range b.IntN(4) {
		q := Question{Node: w.reports[b.IntN(len(w.reports))].Node, Pod: []string{"pod", "other", "another"}[i]}
		d := ledger.Demand{Owner: ledger.Claim(fmt.Sprintf("c%d", b.IntN(4))), Class: w.classes[b.IntN(3)].Name, Bytes: int64(1 + b.IntN(3)), Factor: 1 + b.IntN(3)}
		d.Yields = d.Class == "lun"
		q.Demands = []ledger.Demand{d}
		if i == 0 && b.chance(2) { // when it had fewer volumes
			q.Demands = w.asked.Demands[:1+b.IntN(len(w.asked.Demands))]
		}
		w.earlier = append(w.earlier, q)
	}
}

// settle tells a scheduler of everything in the land.
func (w land) settle(s *scheduler) error {
	for _, c := range w.classes {
		if err := s.apply(event{kind: classes, object: c}); err != nil {
			return err
		}
	}
	for _, r := range w.reports {
		if err := s.apply(event{kind: reports, object: r}); err != nil {
			return err
		}
	}
	for _, v := range w.volumes {
		if err := s.apply(event{kind: volumes, object: v}); err != nil {
			return err
		}
	}
	s.ledger.SetSynced()
	for _, q := range w.earlier {
		if _, _, err := s.reserves(q, nil); err != nil {
			return err
		}
	}
	return nil
}

// request of a question.
func (s *scheduler) request(q Question, strategy ledger.Strategy) *ledger.Request {
	r, _ := s.ledger.Request(ledger.RequestOptions{Pod: q.Pod, Strategy: strategy, Siblings: q.Siblings, Among: q.Among}, q.Demands...)
	return r
}

// asks whether a pod fits, of the ledger and of the model, which must agree.
func (s *scheduler) asks(q Question, strategy ledger.Strategy) (ledger.Verdict, error) {
	verdict := s.ledger.Snapshot().Plan(s.request(q, strategy)).Fit(s.ledger.Node(q.Node))
	if want := s.ledger.Synced() && s.model.Places(q); verdict.Fits() != want {
		return verdict, fmt.Errorf("the pod %s on %s: %v (%v), want fits %t; asked %+v", q.Pod, q.Node, verdict.Reason, verdict.Owner, want, q)
	}
	return verdict, nil
}

// reserves asks, and reserves if that is possible. Doing it again must change nothing.
func (s *scheduler) reserves(q Question, strategy ledger.Strategy) ([]ledger.Choice, ledger.Verdict, error) {
	verdict, err := s.asks(q, strategy)
	if err != nil {
		return nil, verdict, err
	}
	choices, reserved := s.ledger.Reserve(q.Node, s.request(q, strategy))
	if reserved.Fits() != verdict.Fits() {
		return nil, verdict, fmt.Errorf("the pod %s on %s: Fit says %v and Reserve %v", q.Pod, q.Node, verdict, reserved)
	}
	if reserved.Fits() {
		if err := s.model.Legal(q, choices); err != nil {
			return nil, verdict, err
		}
		s.model.Reserve(q.Pod, q.Node, q.Demands, choices)
	}
	return choices, verdict, s.check()
}

// nodes are the nodes of a placement, in order.
func nodesOf(choices []ledger.Choice) []string {
	var nodes []string
	for _, c := range choices {
		if !slices.Contains(nodes, c.Node) {
			nodes = append(nodes, c.Node)
		}
	}
	return nodes
}

func TestEveryReplicaFindsAPlaceExactlyWhenSomeWayToPlaceThemAllExists(t *testing.T) {
	n, count := 20_000, map[string]int{}
	if testing.Short() {
		n = 2_000
	}
	for seed := range n {
		random := rand.New(rand.NewPCG(uint64(seed), 3))
		w := someLand(random)
		s := newScheduler()
		if err := w.settle(s); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, w)
		}
		q := w.asked
		for _, r := range w.reports {
			q.Node = r.Node
			strategy := ledger.Strategies[random.IntN(len(ledger.Strategies))]
			before, _ := dump(s.ledger)
			choices, verdict, err := s.reserves(q, strategy)
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, w)
			}
			count[verdict.Reason.String()]++
			if !verdict.Fits() {
				if after, _ := dump(s.ledger); sameFacts(before, after) != nil {
					t.Fatalf("seed %d: a reservation that failed left something behind\n%s", seed, w)
				}
				continue
			}
			count[fmt.Sprintf("on %d nodes", len(nodesOf(choices)))]++
			s.ledger.Unreserve(q.Pod, q.Node)
			s.model.Unreserve(q.Pod, q.Node)
			if err := s.check(); err != nil {
				t.Fatalf("seed %d: after it was given back: %v\n%s", seed, err, w)
			}
		}
	}
	for _, what := range []string{"Fits", "NoStandby", "SiblingsElsewhere", "on 2 nodes", "on 3 nodes", "on 4 nodes"} {
		if count[what] < n/200 {
			t.Errorf("%q came %d times in %d clusters: too few to prove anything", what, count[what], n)
		}
	}
	t.Logf("%v", count)
}

// String is for people.
func (w land) String() string {
	var b strings.Builder
	for _, r := range w.reports {
		fmt.Fprintf(&b, "%+v\n", r)
	}
	for _, v := range w.volumes {
		fmt.Fprintf(&b, "%+v\n", v)
	}
	for _, q := range w.earlier {
		fmt.Fprintf(&b, "earlier %+v\n", q)
	}
	return b.String() + fmt.Sprintf("asked %+v", w.asked)
}
