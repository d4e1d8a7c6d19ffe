package main

import (
	"math"

	"berth.dev/berth/test/figures"
)

// sides are all that is measured, in the order of a round.
var sides = []side{
	{name: "no volumes, plugin", profile: plugin},
	{name: "no volumes, stock", profile: stock},
	{name: "no volumes in batches, plugin", profile: plugin, batching: true},
	{name: "no volumes in batches, stock", profile: stock, batching: true},
	{name: "inline volume, plugin", profile: plugin, kind: kind{inline: true}},
	{name: "inline volume, stock", profile: stock, kind: kind{inline: true}},
	{name: "1 claim, plugin", profile: plugin, kind: kind{claims: 1}},
	{name: "1 claim, stock", profile: stock, kind: kind{claims: 1}},
	{name: "1 claim, extender", profile: extended, kind: kind{claims: 1}},
	{name: "3 claims, plugin", profile: plugin, kind: kind{claims: 3}},
	{name: "3 claims, stock", profile: stock, kind: kind{claims: 3}},
	{name: "3 claims, extender", profile: extended, kind: kind{claims: 3}},
}

// comparison of one side with another, its baseline.
type comparison struct {
	a, b string
	// target is the least ratio of their rates at so many nodes and more, or none.
	target []target
	// alike is whether the target is that no difference can be seen.
	alike bool
}

type target struct {
	nodes int
	ratio float64
}

var comparisons = []comparison{
	{a: "no volumes, plugin", b: "no volumes, stock", alike: true},
	{a: "no volumes in batches, plugin", b: "no volumes in batches, stock", alike: true},
	{a: "inline volume, plugin", b: "no volumes, plugin", target: []target{{0, 0.9}}},
	// The stock scheduler does not check whether an inline volume has room: its
	// loss on such pods is the price of the larger object, and only the rest is the
	// plugin's.
	{a: "inline volume, stock", b: "no volumes, stock"},
	{a: "inline volume, plugin", b: "inline volume, stock"},
	{a: "1 claim, plugin", b: "1 claim, stock", target: []target{{1000, 1.5}, {5000, 10}}},
	{a: "3 claims, plugin", b: "3 claims, stock", target: []target{{1000, 1.5}, {5000, 10}}},
	{a: "1 claim, plugin", b: "1 claim, extender", target: []target{{1000, 3}, {5000, 10}}},
	{a: "3 claims, plugin", b: "3 claims, extender", target: []target{{1000, 3}, {5000, 10}}},
}

// at is the target that holds for so many nodes, if there is one.
func (c comparison) at(nodes int) (ratio float64, some bool) {
	for _, t := range c.target {
		if nodes >= t.nodes {
			ratio, some = t.ratio, true
		}
	}
	return ratio, some
}

// verdict says whether the target is met. One round has no interval, and shows
// nothing.
func (c comparison) verdict(r figures.Interval, nodes int) string {
	want, some := c.at(nodes)
	switch {
	case !c.alike && !some:
		return "-"
	case r.Low == r.High:
		return "1 round"
	case c.alike && r.Low <= 1 && r.High >= 1:
		return "met"
	case c.alike:
		return "not met"
	case r.Value >= want:
		return "met"
	default:
		return "not met"
	}
}

// pods is how many pods a side is given at once: enough to take it some seconds.
// The cost of published capacity grows with the square of the nodes, and with the
// claims.
func (s side) pods(nodes int, factor float64) int {
	n := 800.0
	size := float64(nodes) / 1000
	switch claims := float64(s.kind.claims); {
	case claims == 0:
	case s.profile == plugin:
		n = 240 / claims
	case s.profile == extended:
		n = min(40/math.Sqrt(size), 100)
	case s.profile == stock:
		n = min(16/size/math.Sqrt(claims), 100)
	}
	return max(int(math.Round(n*factor)), 3)
}
