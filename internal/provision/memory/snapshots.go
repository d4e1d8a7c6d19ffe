package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
)

var _ provision.Full = (*Provisioner)(nil)

// Snapshot implements provision.Snapshotter.
func (p *Provisioner) Snapshot(ctx context.Context, r provision.SnapshotRequest) (s provision.Snapshot, err error) {
	if err := r.Check(); err != nil {
		return s, err
	}
	_, err = p.change(ctx, Snapshot, r.ID, func() (provision.Volume, error) {
		s, err = p.disks.snapshot(r)
		return keep, err
	})
	return s, err
}

// GetSnapshot implements provision.Snapshotter.
func (p *Provisioner) GetSnapshot(ctx context.Context, id string) (provision.Snapshot, error) {
	if err := provision.CheckSnapshotID(id); err != nil {
		return provision.Snapshot{}, err
	}
	return disturbed(ctx, p, GetSnapshot, id, func() (provision.Snapshot, error) {
		p.disks.mu.Lock()
		defer p.disks.mu.Unlock()
		s, pool := p.disks.pools.findSnapshot(id)
		if pool == nil {
			return provision.Snapshot{}, fmt.Errorf("%w: snapshot %s", provision.ErrNotFound, id)
		}
		return s, nil
	})
}

// DeleteSnapshot implements provision.Snapshotter.
func (p *Provisioner) DeleteSnapshot(ctx context.Context, id string) error {
	if err := provision.CheckSnapshotID(id); err != nil {
		return err
	}
	_, err := p.change(ctx, DeleteSnapshot, id, func() (provision.Volume, error) {
		p.disks.mu.Lock()
		defer p.disks.mu.Unlock()
		if _, pool := p.disks.pools.findSnapshot(id); pool != nil {
			delete(pool.snapshots, id)
			delete(pool.contents, id)
			p.disks.notify()
		}
		return keep, nil
	})
	return err
}

func (d *Disks) snapshot(r provision.SnapshotRequest) (provision.Snapshot, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, p := d.pools.findSnapshot(r.ID); p != nil {
		if s.Volume != r.Volume {
			return provision.Snapshot{}, fmt.Errorf("%w: snapshot %s is of volume %s", provision.ErrConflict, r.ID, s.Volume)
		}
		return s, nil
	}
	v, p := d.pools.find(r.Volume)
	switch {
	case p == nil:
		return provision.Snapshot{}, fmt.Errorf("%w: %s", provision.ErrNotFound, r.Volume)
	case !copies(v.Pool):
		return provision.Snapshot{}, fmt.Errorf("%w: pool %s has no snapshots", provision.ErrUnsupported, v.Pool.Name)
	}
	if err := r.Limits.Admit(p.figures(v.Pool), v.Size); err != nil {
		return provision.Snapshot{}, err
	}
	s := provision.Snapshot{
		ID: r.ID, Volume: v.ID, Pool: v.Pool, Size: v.Size, Allocated: v.Size, Filesystem: v.Filesystem, Taken: time.Unix(1, 0).UTC(),
	}
	p.snapshots[r.ID], p.contents[r.ID] = s, p.contents[v.ID]
	d.notify()
	return s, nil
}

// copies says whether a pool has snapshots. All pools have them that are not handed out
// whole, even if real pools of their type have none: tests with this provisioner do not
// depend on the type.
func copies(pool provision.PoolRef) bool { return provision.TraitsOf(pool.Type).Copies != "" }

// Write replaces the content of a volume.
func (d *Disks) Write(id, content string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, p := d.pools.find(id); p != nil {
		p.contents[id] = content
	}
}

// Read returns the content of a volume.
func (d *Disks) Read(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, p := d.pools.find(id)
	if p == nil {
		return ""
	}
	return p.contents[id]
}

func (p *pool) sortedSnapshots() []provision.Snapshot {
	return slices.SortedFunc(maps.Values(p.snapshots), func(a, b provision.Snapshot) int { return cmp.Compare(a.ID, b.ID) })
}

// Contents returns all that is kept of a volume: its head, its points and branches, and what was received half.
func (d *Disks) Contents(id string) (all []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, p := d.pools.find(id); p != nil {
		all = append(all, p.contents[id])
	}
	if h := d.copies[id]; h != nil {
		all = append(all, slices.Collect(maps.Values(h.places))...)
	}
	return all
}
