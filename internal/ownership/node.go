package ownership

// Node is an agent's rules for one volume.
type Node struct{ Stage, Unstage, Tend, Held Chain[NodeFacts] }

// NodeRules are the rules as the product uses them.
func NodeRules() Node { return Node{StageRules, UnstageRules, TendRules, HeldRules} }

// Next returns the answer to the kubelet and the action to carry out. While the
// kubelet asks for something, its rules go first; when they only wait, or are done,
// there may still be upkeep. An action of Nothing, Wait or Refuse needs no effect.
func (n Node) Next(f *NodeFacts) (answer, do Action) {
	f.Record = f.Record.On(f.Me)
	answer, do = n.next(f)
	return answer.stored(), do.stored()
}

func (n Node) next(f *NodeFacts) (answer, do Action) {
	switch {
	case f.Held:
		answer = n.Held.Decide(f)
		return answer, answer
	case f.Wanted:
		answer = n.follow(n.Stage.Decide(f), f)
	case f.Unstaging:
		answer = n.follow(n.Unstage.Decide(f), f)
	}
	if answer.Verb > GiveUp {
		return answer, answer
	}
	return answer, n.follow(n.Tend.Decide(f), f)
}

func (n Node) follow(a Action, f *NodeFacts) Action {
	if a.Verb == GiveUp {
		return n.Unstage.Decide(f)
	}
	return a
}
