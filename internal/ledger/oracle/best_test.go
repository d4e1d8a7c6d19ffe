package oracle

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"berth.dev/berth/internal/ledger"
)

// goesOn is whether the first nodes of a placement, one for each replica, can be continued to a whole
// one.
func (m *Model) goesOn(q Question, first []string) bool {
	factor := 1
	for _, d := range q.Demands {
		factor = max(factor, d.Factor)
	}
	if len(first) == factor {
		return true
	}
	for _, node := range sortedKeys(m.reports) {
		if m.follows(q, first, node) && m.goesOn(q, append(slices.Clone(first), node)) {
			return true
		}
	}
	return false
}

// follows is whether a node may have the next replica.
func (m *Model) follows(q Question, first []string, node string) bool {
	if slices.Contains(first, node) {
		return false
	}
	count := m.siblings(q.Siblings)
	for other := range count {
		if !slices.Contains(first, other) && count[other] > count[node] {
			return false
		}
	}
	here := next(q, first)
	s := sets{m: m, q: q}
	return s.open(node, here) && m.takes(node, q.Pod, true, here, nil)
}

// next are the demands that have a replica after the first ones.
func next(q Question, first []string) []ledger.Demand {
	return slices.DeleteFunc(slices.Clone(q.Demands), func(d ledger.Demand) bool { return d.Factor <= len(first) })
}

// rank orders nodes for the next replica; the strategy's score is left out.
func (m *Model) rank(q Question, first []string, node string) [3]int {
	var rank [3]int // volumes that are not there, replicas in the domain, volumes without room held there
	for _, d := range next(q, first) {
		if !m.placedOn(d.Owner, node) {
			rank[0]++
		}
		if h := m.holds.on(d.Owner, node); h == nil || !h.StandbyOf[q.Node] {
			rank[2]++
		}
	}
	for _, other := range first {
		if domain := m.reports[node].Domain; domain != "" && m.reports[other].Domain == domain {
			rank[1]++
		}
	}
	return rank
}

func compareRanks(a, b [3]int) int { return slices.CompareFunc(a[:], b[:], cmp.Compare[int]) }

func TestEachStandbyIsOnTheBestNodeThatLeavesOneForTheOthers(t *testing.T) {
	n, count := 20_000, map[string]int{}
	if testing.Short() {
		n = 2_000
	}
	for seed := range n {
		random := rand.New(rand.NewPCG(uint64(seed), 4))
		w, s := someLand(random), newScheduler()
		if err := w.settle(s); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, w)
		}
		q := w.asked
		q.Node = w.reports[random.IntN(len(w.reports))].Node
		choices, verdict := s.ledger.Snapshot().Plan(s.request(q, nil)).Place(s.ledger.Node(q.Node))
		if !verdict.Fits() {
			continue
		}
		line := nodesOf(choices)
		for i := 1; i < len(line); i++ {
			chosen := s.model.rank(q, line[:i], line[i])
			for _, node := range sortedKeys(s.model.reports) {
				first := append(slices.Clone(line[:i]), node)
				better := compareRanks(s.model.rank(q, line[:i], node), chosen) < 0
				if better && !s.model.follows(q, line[:i], node) {
					count["a better node that cannot"]++
				} else if better && s.model.goesOn(q, first) {
					t.Fatalf("seed %d: replica %d of %v is on %s, %s is better\n%s", seed, i+1, q, line[i], node, w)
				} else if better {
					count["a better node that leaves none"]++
				}
			}
			count[fmt.Sprint("rank ", chosen)]++
		}
	}
	for _, what := range []string{"a better node that cannot", "rank [1 0 0]", "rank [1 0 1]", "rank [1 1 1]", "rank [0 0 1]", "rank [0 1 1]"} {
		if count[what] == 0 {
			t.Errorf("%q never came: too few clusters to prove anything", what)
		}
	}
	t.Logf("%v", count)
}

// A node may be able to take two volumes and not the larger of them alone: only as long as both are placed
// does room that is held for the smaller one make way.
func TestAStandbyMakesWayForOneThatHasNoOtherNode(t *testing.T) {
	pool := func(name string, total int64, classes ...string) ledger.Pool {
		return ledger.Pool{Name: name, Kind: ledger.Thick, Total: total, Unit: 1, Classes: classes}
	}
	small := ledger.Demand{Owner: ledger.Claim("small"), Class: "a", Bytes: 2, Factor: 2}
	large := ledger.Demand{Owner: ledger.Claim("large"), Class: "b", Bytes: 2, Factor: 3}
	w := land{
		classes: []ledger.Class{{Name: "a"}, {Name: "b"}},
		reports: []ledger.Report{
			{Node: "own", Ready: true, Domain: "x", Pools: []ledger.Pool{pool("p", 9, "a", "b")}},
			{Node: "tight", Ready: true, Domain: "x", Pools: []ledger.Pool{pool("p", 3, "a", "b"), pool("q", 2, "a")}},
		},
		earlier: []Question{{Pod: "pod", Node: "own", Demands: []ledger.Demand{small}}},
		asked:   Question{Pod: "pod", Node: "own", Demands: []ledger.Demand{small, large}},
	}
	s := newScheduler()
	if err := w.settle(s); err != nil {
		t.Fatal(err)
	}
	roomy := ledger.Report{Node: "roomy", Ready: true, Domain: "y", Pools: []ledger.Pool{pool("p", 9, "a", "b")}}
	if err := s.apply(event{kind: reports, object: roomy}); err != nil {
		t.Fatal(err)
	}
	if !s.model.goesOn(w.asked, []string{"own"}) || s.model.goesOn(w.asked, []string{"own", "roomy"}) {
		t.Fatal("the case is not the one of the test's name")
	}
	choices, _, err := s.reserves(w.asked, nil)
	if got := nodesOf(choices); err != nil || !slices.Equal(got, []string{"own", "tight", "roomy"}) {
		t.Errorf("the replicas are on %v (%v)", got, err)
	}
}
