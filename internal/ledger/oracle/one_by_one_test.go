package oracle

import (
	"math/rand/v2"
	"slices"
	"testing"

	"berth.dev/berth/internal/ledger"
)

// onlyOf are the choices for one owner.
func onlyOf(choices []ledger.Choice, o ledger.Owner) []ledger.Choice {
	return slices.DeleteFunc(slices.Clone(choices), func(c ledger.Choice) bool { return c.Owner != o })
}

// within is whether all of the nodes are among others.
func within(nodes, others []string) bool {
	return !slices.ContainsFunc(nodes, func(node string) bool { return !slices.Contains(others, node) })
}

// provision makes the Volume of the question's first demand, as CreateVolume does that knows of the
// others, and returns its nodes.
func (s *scheduler) provision(q Question) ([]string, error) {
	choices, verdict, err := s.reserves(q, nil)
	if err != nil || !verdict.Fits() {
		return nil, err
	}
	d := q.Demands[0]
	v := ledger.VolumeObject{Name: "pvc-" + d.Owner.ID, Claim: d.Owner.ID, Class: d.Class, Capacity: d.Bytes}
	for _, c := range onlyOf(choices, d.Owner) {
		v.Replicas = append(v.Replicas, ledger.Replica{Node: c.Node, Pool: c.Pool, Yields: d.Yields && c.Node != q.Node})
	}
	if err := s.apply(event{kind: volumes, object: v}); err != nil {
		return nil, err
	}
	s.ledger.Unreserve(q.Pod, q.Node)
	s.model.Unreserve(q.Pod, q.Node)
	return nodesOf(onlyOf(choices, d.Owner)), s.check()
}

func TestClaimsThatComeOneByOneReachNestedNodesWheneverAllOfThemFit(t *testing.T) {
	n, several := 10_000, 0
	if testing.Short() {
		n = 1_000
	}
	for seed := range n {
		random := rand.New(rand.NewPCG(uint64(seed), 5))
		w, s := someLand(random), newScheduler()
		w.earlier = nil // a pod that is placed claim by claim holds nothing
		for i := range w.volumes {
			w.volumes[i].Claim = ""
		}
		if err := w.settle(s); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, w)
		}
		q := w.asked
		q.Node = w.reports[random.IntN(len(w.reports))].Node
		if !s.model.Places(q) {
			continue
		}
		var before [][]string
		random.Shuffle(len(q.Demands), func(i, j int) { q.Demands[i], q.Demands[j] = q.Demands[j], q.Demands[i] })
		for len(q.Demands) > 0 {
			nodes, err := s.provision(q)
			if err != nil || len(nodes) < max(q.Demands[0].Factor, 1) {
				t.Fatalf("seed %d: %v has the nodes %v: %v\n%s", seed, q.Demands[0], nodes, err, w)
			}
			for _, earlier := range before {
				if !within(earlier, nodes) && !within(nodes, earlier) {
					t.Fatalf("seed %d: %v has the nodes %v, an earlier volume %v\n%s", seed, q.Demands[0], nodes, before, w)
				}
				if len(nodes) > 1 && len(earlier) > 1 {
					several++
				}
			}
			before = append(before, nodes)
			q.Siblings = append(slices.Clone(q.Siblings), q.Demands[0].Owner)
			q.Demands = q.Demands[1:]
		}
	}
	if several < n/100 {
		t.Errorf("in %d clusters only %d pairs of volumes had standbys: too few to prove anything", n, several)
	}
	t.Logf("%d pairs of volumes had standbys", several)
}
