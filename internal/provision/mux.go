package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"berth.dev/berth/internal/signal"
)

// Member is one of a node's provisioners, with the types of pools it serves.
type Member struct {
	Types []string
	Provisioner
}

// Mux joins all the provisioners of a node into one. It keeps no record of which member has
// a volume, but asks the members. So a restart loses nothing but the latest report of each.
// A member whose kind of pool the node does not have reports no pools, and no error.
type Mux struct {
	members []Member
	reports []lastReport // by member
	changed signal.Signal
}

var (
	_ Full        = (*Mux)(nil)
	_ Replicators = (*Mux)(nil)
)

// NewMux joins members that serve different types. It signals changes while Run runs.
func NewMux(members ...Member) *Mux {
	return &Mux{members: members, reports: make([]lastReport, len(members)), changed: signal.New()}
}

// Run passes on the members' signals until ctx ends.
func (m *Mux) Run(ctx context.Context) error {
	work, ctx := errgroup.WithContext(ctx)
	for _, member := range m.members {
		work.Go(func() error { return m.forward(ctx, member.Changed()) })
	}
	return work.Wait()
}

func (m *Mux) forward(ctx context.Context, signals <-chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
		}
		m.changed.Set()
	}
}

// Changed implements Provisioner.
func (m *Mux) Changed() <-chan struct{} { return m.changed }

// Create implements Provisioner.
func (m *Mux) Create(ctx context.Context, r CreateRequest) (Volume, error) {
	if err := r.Check(); err != nil {
		return Volume{}, err
	}
	i, err := m.serving(r.Pool.Type)
	if err != nil {
		return Volume{}, err
	}
	for j, other := range m.members {
		if j == i || other.lacks(r.ID) {
			continue
		}
		switch v, err := other.Get(ctx, r.ID); {
		case err == nil:
			return Volume{}, fmt.Errorf("%w: volume %s exists in pool %s", ErrConflict, r.ID, v.Pool.Name)
		case !errors.Is(err, ErrNotFound):
			return Volume{}, err
		}
	}
	if _, able := m.members[i].Provisioner.(Snapshotter); !able && r.Source != (Source{}) {
		return Volume{}, fmt.Errorf("%w: pools of type %s make no copies", ErrUnsupported, r.Pool.Type)
	}
	return m.members[i].Create(ctx, r)
}

// serving returns which member serves pools of a type.
func (m *Mux) serving(poolType string) (int, error) {
	i := slices.IndexFunc(m.members, func(member Member) bool { return slices.Contains(member.Types, poolType) })
	if i < 0 {
		return i, fmt.Errorf("%w: no provisioner of this node serves pools of type %q", ErrPoolMissing, poolType)
	}
	return i, nil
}

// ReplicatorOf implements Replicators.
func (m *Mux) ReplicatorOf(ctx context.Context, poolType string) (Replicator, error) {
	i, err := m.serving(poolType)
	if err != nil {
		return nil, err
	}
	return ReplicatorOf(ctx, m.members[i].Provisioner, poolType)
}

// Get implements Provisioner.
func (m *Mux) Get(ctx context.Context, id string) (Volume, error) {
	v, _, err := m.find(ctx, id)
	return v, err
}

// Expand implements Provisioner.
func (m *Mux) Expand(ctx context.Context, r ExpandRequest) (Volume, error) {
	if err := r.Check(); err != nil {
		return Volume{}, err
	}
	_, holder, err := m.find(ctx, r.ID)
	if err != nil {
		return Volume{}, err
	}
	return holder.Expand(ctx, r)
}

// Format implements Provisioner.
func (m *Mux) Format(ctx context.Context, r FormatRequest) (Volume, error) {
	if err := r.Check(); err != nil {
		return Volume{}, err
	}
	_, holder, err := m.find(ctx, r.ID)
	if err != nil {
		return Volume{}, err
	}
	return holder.Format(ctx, r)
}

// Delete implements Provisioner. If no member has the volume, Delete asks every member: one
// may know that something that is not Berth's has its name.
func (m *Mux) Delete(ctx context.Context, id string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	for _, member := range concerned(ctx, m.members, id, Member.Get) {
		if err := member.Delete(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// find returns a volume and the member that holds it.
func (m *Mux) find(ctx context.Context, id string) (Volume, Member, error) {
	return find(ctx, m.members, id, Member.Get)
}
