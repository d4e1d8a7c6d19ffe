package oracle

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"berth.dev/berth/internal/ledger"
)

// features are one that the puzzles' node has, and one that it lacks.
var features = []string{"copies", "flight"}

// puzzle is a node and demands that may or may not fit on it.
func puzzle(random *rand.Rand) (ledger.Report, []ledger.Class, []ledger.Demand) {
	classes := []ledger.Class{
		{Name: "a"}, {Name: "b", Spare: 2}, {Name: "c", Layout: ledger.Layout{Mirrors: 2}}, {Name: "ssd", Media: "ssd"},
	}
	r := ledger.Report{Node: "n", Ready: true, Features: features[:1]}
	for i := range 1 + random.IntN(6) {
		p := ledger.Pool{Name: fmt.Sprintf("p%d", i), Kind: ledger.Thick, Total: int64(1 + random.IntN(12)), Unit: 1}
		if random.IntN(3) == 0 {
			p.Kind = ledger.Device
		}
		if random.IntN(2) == 0 {
			p.Media = "ssd"
		}
		for _, c := range classes {
			if random.IntN(4) > 0 {
				p.Classes = append(p.Classes, c.Name)
			}
		}
		r.Pools = append(r.Pools, p)
	}
	demands := make([]ledger.Demand, 1+random.IntN(7))
	for i := range demands {
		demands[i] = ledger.Demand{Owner: ledger.Claim(fmt.Sprintf("c%d", i)), Class: classes[random.IntN(len(classes))].Name, Bytes: int64(1 + random.IntN(6))}
		if random.IntN(8) == 0 {
			demands[i].Pool = r.Pools[random.IntN(len(r.Pools))].Name
		}
		if random.IntN(8) == 0 {
			demands[i].Feature = features[random.IntN(len(features))]
		}
		if random.IntN(6) == 0 {
			demands[i].Beside = source(random, r.Pools)
		}
	}
	return r, classes, demands
}

// source is some of the pools of the node, as a rule, and pools of another one.
func source(random *rand.Rand, pools []ledger.Pool) []ledger.Place {
	places := []ledger.Place{{Node: "another", Pool: pools[0].Name}}
	for i := range pools {
		if random.IntN(3) > 0 {
			places = append(places, ledger.Place{Node: "n", Pool: pools[i].Name})
		}
	}
	return places
}

func TestDemandsFitTogetherExactlyWhenSomeWayToPlaceThemExists(t *testing.T) {
	n, fitted, refusedTogether := 5_000, 0, 0
	if testing.Short() {
		n = 1_000
	}
	for seed := range n {
		r, all, demands := puzzle(rand.New(rand.NewPCG(uint64(seed), 1)))
		l, m := ledger.New(), New()
		for _, c := range all {
			if err := l.ObserveClass(c); err != nil {
				t.Fatal(err)
			}
			m.ObserveClass(c)
		}
		if err := l.ObserveNode(r); err != nil {
			t.Fatal(err)
		}
		m.ObserveNode(r)
		l.SetSynced()
		want := m.Fits("n", "pod", demands...)
		for _, strategy := range ledger.Strategies {
			request, _ := l.Request(ledger.RequestOptions{Pod: "pod", Strategy: strategy}, demands...)
			verdict := l.Node("n").Fit(request)
			if verdict.Fits() != want || verdict.Reason == ledger.TooManyWays {
				t.Fatalf("seed %d: %v, want fits %t\npools %+v\ndemands %+v", seed, verdict.Reason, want, r.Pools, demands)
			}
			if verdict.Reason == ledger.NotTogether {
				refusedTogether++
			}
			if !want {
				continue
			}
			fitted++
			choices, verdict := l.Reserve("n", request)
			if !verdict.Fits() {
				t.Fatalf("seed %d: Reserve says %v after Fit", seed, verdict.Reason)
			}
			m.Reserve("pod", "n", demands, choices)
			if err := m.Compare(l); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
	if fitted < n/10 || refusedTogether < n/20 {
		t.Errorf("of %d puzzles %d had a solution and %d only failed together: too few to prove anything", n, fitted, refusedTogether)
	}
}
