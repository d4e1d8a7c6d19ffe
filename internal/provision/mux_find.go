package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Knower is an optional interface of a provisioner whose tools are slow: it says without them
// which volumes and snapshots it knows.
type Knower interface {
	// Knows says whether a volume or a snapshot is here. If it is not, sure says whether that
	// is certain: the provisioner has read everything and would have noticed later changes.
	Knows(id string) (here, sure bool)
}

// has says whether a member knows that it has a volume or snapshot, and lacks whether it is
// sure that it has not. Both are false for a member that is no Knower.
func (m Member) has(id string) bool {
	k, able := m.Provisioner.(Knower)
	if !able {
		return false
	}
	here, _ := k.Knows(id)
	return here
}

func (m Member) lacks(id string) bool {
	k, able := m.Provisioner.(Knower)
	if !able {
		return false
	}
	here, sure := k.Knows(id)
	return !here && sure
}

type getter[T any] func(Member, context.Context, string) (T, error)

// find returns the volume or snapshot of an id, and the member that has it. It asks first the
// members that know of it, and last the Knowers that do not, since these would ask their
// tools. The id is missing only if every member says so: a member that fails may have it.
func find[T any](ctx context.Context, members []Member, id string, get getter[T]) (none T, _ Member, _ error) {
	var failure error
	for _, member := range likely(members, id) {
		got, err := get(member, ctx, id)
		switch {
		case err == nil:
			return got, member, nil
		case !errors.Is(err, ErrNotFound):
			failure = errors.Join(failure, err)
		}
	}
	if failure != nil {
		return none, Member{}, failure
	}
	return none, Member{}, fmt.Errorf("%w: %s", ErrNotFound, id)
}

// likely returns the members in the order in which find asks them for an id.
func likely(members []Member, id string) []Member {
	rank := func(m Member) int {
		_, knower := m.Provisioner.(Knower)
		switch {
		case m.has(id):
			return 0
		case !knower:
			return 1
		}
		return 2
	}
	return slices.SortedStableFunc(slices.Values(members), func(a, b Member) int { return cmp.Compare(rank(a), rank(b)) })
}

// concerned returns the members that a deletion asks: all of them or, if one is known to have
// the volume or snapshot, those that are not sure that they lack it.
func concerned[T any](ctx context.Context, members []Member, id string, get getter[T]) []Member {
	held := slices.ContainsFunc(members, func(m Member) bool {
		if _, knower := m.Provisioner.(Knower); knower {
			return m.has(id)
		}
		_, err := get(m, ctx, id)
		return err == nil
	})
	if !held {
		return members
	}
	return slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return m.lacks(id) })
}
