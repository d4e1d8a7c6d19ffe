package provision

import (
	"context"
	"errors"
	"fmt"
)

// Snapshot implements Snapshotter. It looks for the volume first: the volume is nearly always
// there and known. No member knows a snapshot that is still to be made, and a member asks
// its tools before it says so.
func (m *Mux) Snapshot(ctx context.Context, r SnapshotRequest) (Snapshot, error) {
	if err := r.Check(); err != nil {
		return Snapshot{}, err
	}
	_, holder, err := m.find(ctx, r.Volume)
	if errors.Is(err, ErrNotFound) { // it may have gone after its snapshot was taken
		_, holder, err = m.findSnapshot(ctx, r.ID)
	}
	if err != nil {
		return Snapshot{}, err
	}
	s, able := holder.Provisioner.(Snapshotter)
	if !able {
		return Snapshot{}, fmt.Errorf("%w: pools of type %s have no snapshots", ErrUnsupported, holder.Types[0])
	}
	return s.Snapshot(ctx, r)
}

// GetSnapshot implements Snapshotter.
func (m *Mux) GetSnapshot(ctx context.Context, id string) (Snapshot, error) {
	s, _, err := m.findSnapshot(ctx, id)
	return s, err
}

// DeleteSnapshot implements Snapshotter. Every member is asked, as by Delete.
func (m *Mux) DeleteSnapshot(ctx context.Context, id string) error {
	if err := CheckSnapshotID(id); err != nil {
		return err
	}
	for _, member := range concerned(ctx, m.members, id, Member.snapshot) {
		s, able := member.Provisioner.(Snapshotter)
		if !able {
			continue
		}
		if err := s.DeleteSnapshot(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func (m *Mux) findSnapshot(ctx context.Context, id string) (Snapshot, Member, error) {
	return find(ctx, m.members, id, Member.snapshot)
}

func (m Member) snapshot(ctx context.Context, id string) (Snapshot, error) {
	if s, able := m.Provisioner.(Snapshotter); able {
		return s.GetSnapshot(ctx, id)
	}
	return Snapshot{}, ErrNotFound
}
