package ownership

// grow makes the copy as large as the volume shall be, and as large as the copy of any peer: the record
// may come from a backup that does not know how large the volume is, and no stream of a larger copy is
// received. Each node grows its copy by itself, a mounted one last: while the replica of a node that
// answers has no room, the filesystem does not grow beyond it, or that replica would fall behind. A node
// that does not answer holds up nothing; it grows before it follows. The rules before this one decide about a
// copy that is not, or no more, one of the volume's.
func grow(f *NodeFacts) (Action, bool) {
	if !f.traits().Data || f.Full || f.Record.Deleting {
		return next()
	}
	size := f.Record.Size
	for i := range f.Peers {
		size = max(size, f.Peers[i].Copy.Size)
	}
	if f.Copy.Size >= size || f.Mounted && othersSmaller(f, size) {
		return next()
	}
	return Action{Verb: Grow, Size: size, Why: Why{Reason: Growing, Node: f.Me}}, true
}

// othersSmaller tells whether a replica on a node that answers is smaller.
func othersSmaller(f *NodeFacts, size int64) bool {
	for i := range f.Peers {
		e, counted := f.Record.Replica(f.Peers[i].Node)
		if counted && e.State.counts() && f.Peers[i].Copy.Size < size {
			return true
		}
	}
	return false
}

// roomFor tells whether what the peer holds has room here, or can get it.
func roomFor(f *NodeFacts, peer int) bool {
	return !f.Full || f.Peers[peer].Copy.Size <= f.Copy.Size
}
