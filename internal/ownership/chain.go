package ownership

// Rule looks at the facts and either decides or leaves the decision to the next
// rule of its chain.
type Rule[F any] struct {
	Name   string
	Decide func(*F) (Action, bool)
}

// Chain is an ordered list of rules: the first rule that decides wins.
type Chain[F any] []Rule[F]

// Decide runs the chain. A chain in which no rule has anything to say means Nothing.
func (c Chain[F]) Decide(f *F) Action {
	for i := range c {
		if a, decided := c[i].Decide(f); decided {
			return a
		}
	}
	return Action{Verb: Nothing, Why: Why{Reason: Settled}}
}

// Alter returns the chain with the named rule's decision replaced by one that is
// made from it. It is the seam through which tests break one rule at a time. It
// panics when there is no such rule, because a mutant that alters nothing would
// prove nothing.
func (c Chain[F]) Alter(name string, alter func(old func(*F) (Action, bool)) func(*F) (Action, bool)) Chain[F] {
	out := append(Chain[F](nil), c...)
	for i := range out {
		if out[i].Name == name {
			out[i].Decide = alter(out[i].Decide)
			return out
		}
	}
	panic("no rule named " + name)
}

// Without returns the chain without the named rule.
func (c Chain[F]) Without(name string) Chain[F] {
	return c.Alter(name, func(func(*F) (Action, bool)) func(*F) (Action, bool) {
		return func(*F) (Action, bool) { return next() }
	})
}

// Rule returns the named rule's decision. It panics when there is none.
func (c Chain[F]) Rule(name string) func(*F) (Action, bool) {
	for i := range c {
		if c[i].Name == name {
			return c[i].Decide
		}
	}
	panic("no rule named " + name)
}
