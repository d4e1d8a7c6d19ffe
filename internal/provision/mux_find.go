package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Knower is what a provisioner can do besides whose tools take long to be asked: it says
// what it knows without them.
type Knower interface {
	// Knows says whether a volume or a snapshot is here, and if it is not, whether that is
	// sure: the provisioner has read everything and would have noticed what came since.
	Knows(id string) (here, sure bool)
}

// has says whether a member knows that it has something, lacks whether it is sure that it
// has not. Of one that has to be asked it is neither.
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

// find returns what a member has under an id, and the member. Those are asked first that
// know of it, and those last that do not and would ask their tools. It is missing only if
// every member says so: one that cannot be asked may have it.
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

// likely returns the members in the order in which to look for something.
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

// concerned returns who is to remove something: everybody, without those who are sure that
// they lack what another one has.
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
