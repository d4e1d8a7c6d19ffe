package decide

import "testing"

func TestTheFirstRuleWhoseConditionHoldsDecides(t *testing.T) {
	chain := Chain[int, string]{
		{When: func(n int) bool { return n > 10 }, Then: func(int) string { return "large" }},
		{When: func(n int) bool { return n > 5 }, Then: func(int) string { return "middling" }},
	}
	for n, want := range map[int]string{11: "large", 10: "middling", 5: ""} {
		if got := chain.Decide(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	chain = append(chain, Rule[int, string]{Then: func(int) string { return "small" }})
	if got := chain.Decide(5); got != "small" {
		t.Errorf("5 is %q", got)
	}
}
