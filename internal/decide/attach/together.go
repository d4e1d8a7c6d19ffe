package attach

import "slices"

// table is what is possible for volumes that are used together. Nodes are numbered.
type table struct {
	// free slots of each node for standbys.
	free    []int
	members []member
}

// member is one of the volumes.
type member struct {
	// has it on which nodes, and may have it on which others.
	has, may []bool
	// deficit is how many more standbys it shall have.
	deficit int
}

// next is the first node for one more standby of a member after which as many nodes can be common, and as
// many standbys placed, as before; -1 if none takes it.
//
// Both can be had at once: a node that all members can still be on has a slot for each of them, so that no
// member stands in the way of another one there.
func (t *table) next(member int) int {
	common, placed := t.common(), t.placed()
	for j := range t.free {
		if m := &t.members[member]; m.deficit == 0 || !m.may[j] || t.free[j] == 0 {
			continue
		}
		after := t.with(member, j)
		if after.common() == common && after.placed() == placed-1 {
			return j
		}
	}
	return -1
}

// with is the table after one more standby.
func (t *table) with(member, node int) *table {
	after := &table{free: slices.Clone(t.free), members: slices.Clone(t.members)}
	after.free[node]--
	m := &after.members[member]
	m.has, m.may = slices.Clone(m.has), slices.Clone(m.may)
	m.has[node], m.may[node] = true, false
	m.deficit--
	return after
}

// common is how many nodes all members can be on in the end. Nodes on which the same members are missing
// are alike, so the search is over how many of each kind are used.
func (t *table) common() int {
	kinds, counts := [][]int{}, []int{}
	for j := range t.free {
		missing, possible := t.missing(j)
		switch i := slices.IndexFunc(kinds, func(k []int) bool { return slices.Equal(k, missing) }); {
		case !possible:
		case i >= 0:
			counts[i]++
		default:
			kinds, counts = append(kinds, missing), append(counts, 1)
		}
	}
	deficits := make([]int, len(t.members))
	for i := range t.members {
		deficits[i] = t.members[i].deficit
	}
	return most(kinds, counts, deficits)
}

// missing are the members that are not on a node; possible tells whether all of them can come.
func (t *table) missing(node int) (members []int, possible bool) {
	for i := range t.members {
		m := &t.members[i]
		switch {
		case m.has[node]:
		case !m.may[node]:
			return nil, false
		default:
			members = append(members, i)
		}
	}
	return members, len(members) <= t.free[node]
}

// most is how many nodes can be used at most, if each of a kind costs one of each of its members' deficits.
func most(kinds [][]int, counts, deficits []int) (best int) {
	if len(kinds) == 0 {
		return 0
	}
	can := counts[0]
	for _, member := range kinds[0] {
		can = min(can, deficits[member])
	}
	for n := 0; n <= can; n++ {
		left := slices.Clone(deficits)
		for _, member := range kinds[0] {
			left[member] -= n
		}
		best = max(best, n+most(kinds[1:], counts[1:], left))
	}
	return best
}

// placed is how many standbys can be placed in all: a matching of members and nodes, made by augmenting paths.
func (t *table) placed() (n int) {
	m := &matching{table: t, on: make([][]int, len(t.free))}
	for i := range t.members {
		for range t.members[i].deficit {
			if !m.augment(i, make([]bool, len(t.free))) {
				break
			}
			n++
		}
	}
	return n
}

// matching says which members are placed on which nodes.
type matching struct {
	*table
	on [][]int
}

// augment places one more standby of a member, and moves others if it must.
func (m *matching) augment(member int, seen []bool) bool {
	for j := range m.free {
		if seen[j] || !m.members[member].may[j] || slices.Contains(m.on[j], member) {
			continue
		}
		seen[j] = true
		if len(m.on[j]) < m.free[j] {
			m.on[j] = append(m.on[j], member)
			return true
		}
		for i, other := range m.on[j] {
			if m.augment(other, seen) {
				m.on[j][i] = member
				return true
			}
		}
	}
	return false
}
