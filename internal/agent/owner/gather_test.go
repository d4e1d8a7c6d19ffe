package owner

import (
	"slices"
	"testing"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

func TestTheOtherNodesOfTheRecordAreAsked(t *testing.T) {
	for name, test := range map[string]struct {
		primary string
		want    []string
	}{
		"no owner":                         {"", []string{"b", "c"}},
		"this node owns it":                {"a", []string{"b", "c"}},
		"a replica's node owns it":         {"b", []string{"b", "c"}},
		"a node without a replica owns it": {"d", []string{"b", "c", "d"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := &ownership.Volume{Primary: ownership.Primary{Node: test.primary}, Replicas: []ownership.Replica{{Node: "a"}, {Node: "b"}, {Node: "c"}}}
			if got := others(v, "a"); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestWhenNoEpochFromBeforeALapseCanGoOn: node a may have been fenced, and the record's epoch is the second.
func TestWhenNoEpochFromBeforeALapseCanGoOn(t *testing.T) {
	one, two := lineage.Epoch{Number: 1, ID: "one"}, lineage.Epoch{Number: 2, ID: "two"}
	of := func(node string) *ownership.Volume {
		return &ownership.Volume{Epoch: two, Primary: ownership.Primary{Node: node, Phase: ownership.Active}}
	}
	promised := func(e, opened, closed lineage.Epoch) ownership.Copy {
		return ownership.Copy{Promise: ownership.Promise{Epoch: e}, Opened: opened, Closed: closed}
	}
	for name, test := range map[string]struct {
		record *ownership.Volume
		copy   ownership.Copy
		lapsed bool
	}{
		"the record was not read":                         {nil, promised(two, two, two), true},
		"the epoch is another node's":                     {of("b"), promised(two, one, one), false},
		"the epoch is another node's, and not known here": {of("b"), promised(one, one, one), true},
		"the epoch is open here":                          {of("a"), promised(two, two, one), true},
		"the epoch was given up":                          {of("a"), promised(two, two, two), false},
		"the epoch was given up, and is not known here":   {of("a"), promised(one, two, two), true},
	} {
		t.Run(name, func(t *testing.T) {
			o := New(Config{Node: "a"})
			l := &look{id: "v"}
			l.facts.Record, l.facts.Copy = test.record, test.copy
			if got := o.lapsed(l); got != test.lapsed || o.mayContinue("v") == test.lapsed {
				t.Errorf("lapsed %v, an epoch may go on %v", got, o.mayContinue("v"))
			}
			l.facts.Record = nil
			if got := o.lapsed(l); got != test.lapsed {
				t.Errorf("it does not stay so: lapsed %v", got)
			}
			if o.lapse(); !o.lapsed(l) {
				t.Error("another lapse does not count")
			}
		})
	}
}
