package ownership_test

import (
	"testing"

	. "berth.dev/berth/internal/ownership"
)

func TestOneRuleOfAChainIsAltered(t *testing.T) {
	says := func(verb Verb, decided bool) func(*NodeFacts) (Action, bool) {
		return func(*NodeFacts) (Action, bool) { return Action{Verb: verb}, decided }
	}
	c := Chain[NodeFacts]{{Name: "first", Decide: says(Wait, false)}, {Name: "second", Decide: says(Mount, true)}, {Name: "third", Decide: says(Refuse, true)}}
	altered := c.Alter("second", func(old func(*NodeFacts) (Action, bool)) func(*NodeFacts) (Action, bool) {
		return func(f *NodeFacts) (Action, bool) {
			a, decided := old(f)
			a.Key = Key{Node: "altered"}
			return a, decided
		}
	})
	f := &NodeFacts{}
	if a := altered.Decide(f); a.Verb != Mount || a.Key.Node != "altered" {
		t.Errorf("the altered chain decides to %v with %v", a.Verb, a.Key)
	}
	if a := c.Decide(f); a.Verb != Mount || a.Key.Node != "" {
		t.Errorf("the chain itself decides to %v with %v", a.Verb, a.Key)
	}
	if a := c.Without("second").Decide(f); a.Verb != Refuse {
		t.Errorf("without the second rule the chain decides to %v", a.Verb)
	}
	defer func() {
		if recover() == nil {
			t.Error("a rule was altered that is not there")
		}
	}()
	c.Without("fourth")
}
