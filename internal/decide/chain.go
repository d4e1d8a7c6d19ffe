package decide

// Rule decides if its condition holds; a rule without one always does.
type Rule[F, D any] struct {
	When func(facts F) bool
	Then func(facts F) D
}

// Chain is an ordered list of rules: the first rule whose condition holds decides.
type Chain[F, D any] []Rule[F, D]

// Decide runs the chain. The decision of a chain without a rule for the facts is the zero value.
func (c Chain[F, D]) Decide(facts F) (d D) {
	for _, rule := range c {
		if rule.When == nil || rule.When(facts) {
			return rule.Then(facts)
		}
	}
	return d
}
