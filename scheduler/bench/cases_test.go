package main

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/test/figures"
)

func TestAVerdictGoesByTheTargetForThatManyNodes(t *testing.T) {
	claims := comparison{target: []target{{1000, 1.5}, {5000, 10}}}
	for name, tt := range map[string]struct {
		c     comparison
		r     figures.Interval
		nodes int
		want  string
	}{
		"as much as is asked":                       {claims, figures.Interval{Value: 1.5, Low: 1.2, High: 1.8}, 1000, "met"},
		"too little":                                {claims, figures.Interval{Value: 1.4, Low: 1.2, High: 1.8}, 1000, "not met"},
		"more nodes, more asked":                    {claims, figures.Interval{Value: 8, Low: 7, High: 9}, 5000, "not met"},
		"between two sizes the smaller one's holds": {claims, figures.Interval{Value: 8, Low: 7, High: 9}, 2000, "met"},
		"nothing is asked of few nodes":             {claims, figures.Interval{Value: 0.5, Low: 0.4, High: 0.6}, 100, "-"},
		"alike, with one in the interval":           {comparison{alike: true}, figures.Interval{Value: 0.97, Low: 0.94, High: 1.01}, 1000, "met"},
		"one round shows nothing":                   {claims, figures.Interval{Value: 9, Low: 9, High: 9}, 1000, "1 round"},
		"a difference that can be seen":             {comparison{alike: true}, figures.Interval{Value: 0.97, Low: 0.95, High: 0.99}, 1000, "not met"},
		"a gain that can be seen is no likeness":    {comparison{alike: true}, figures.Interval{Value: 1.1, Low: 1.05, High: 1.2}, 1000, "not met"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.c.verdict(tt.r, tt.nodes); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestBothSidesOfEveryComparisonAreMeasured(t *testing.T) {
	measured := map[string]bool{}
	for _, s := range sides {
		measured[s.name] = true
	}
	for _, c := range comparisons {
		if !measured[c.a] || !measured[c.b] {
			t.Errorf("%q or %q is measured by no side", c.a, c.b)
		}
	}
}

func TestSidesThatAreSlowAreGivenFewerPods(t *testing.T) {
	s := side{profile: stock, kind: kind{claims: 3}}
	small, large := s.pods(1000, 1), s.pods(5000, 1)
	if small <= large || large < 3 {
		t.Errorf("%d pods on 1000 nodes and %d on 5000", small, large)
	}
	plain := side{profile: plugin}
	if a, b := plain.pods(1000, 1), plain.pods(5000, 1); a != b {
		t.Errorf("pods without volumes: %d and %d", a, b)
	}
	if a, b := plain.pods(1000, 1), (side{profile: stock}).pods(1000, 1); a != b {
		t.Errorf("without volumes: %d pods with the plugin and %d without", a, b)
	}
}

func TestSidesAreMeasuredInTurn(t *testing.T) {
	r := results{options: options{sides: regexp.MustCompile("1 claim")}}
	name := func(all []side) (names []string) {
		for _, s := range all {
			names = append(names, s.name)
		}
		return names
	}
	want := [][]string{{"1 claim, plugin", "1 claim, stock", "1 claim, extender"}, {"1 claim, extender", "1 claim, stock", "1 claim, plugin"}}
	for round, names := range want {
		if diff := cmp.Diff(names, name(inTurn(r.wanted(), round))); diff != "" {
			t.Errorf("round %d: %s", round, diff)
		}
	}
}

func TestTheFirstMeasurementDoesNotPayForTheServersFirstBurst(t *testing.T) {
	for only, want := range map[string][]string{
		"":                {"no volumes, plugin", "1 claim, plugin"},
		"inline.*plugin":  {"inline volume, plugin"},
		"3 claims, stock": {"3 claims, stock"},
	} {
		var names []string
		for _, s := range ripening((&results{options: options{sides: regexp.MustCompile(only)}}).wanted()) {
			names = append(names, s.name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("only %q: %s", only, diff)
		}
	}
}

func TestNumbersOfNodesAscend(t *testing.T) {
	var s sizes
	if err := s.Set("100,2000"); err != nil || s.String() != "100 2000" {
		t.Errorf("got %v, %v", s, err)
	}
	for _, text := range []string{"", "0", "5,5", "5,3", "many"} {
		if err := new(sizes).Set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
