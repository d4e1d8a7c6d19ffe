package memory

import (
	"fmt"
	"maps"
	"path"
	"strings"

	"berth.dev/berth/internal/provision"
)

// keep as the result of an edit leaves the volume as it is.
var keep provision.Volume

func (d *Disks) edit(id string, change func(*pool, provision.Volume) (provision.Volume, error)) (provision.Volume, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, pool := d.pools.find(id)
	if pool == nil {
		return provision.Volume{}, fmt.Errorf("%w: %s", provision.ErrNotFound, id)
	}
	edited, err := change(pool, v)
	if err != nil {
		return provision.Volume{}, err
	}
	if edited == keep {
		return v, nil
	}
	pool.volumes[id] = edited
	d.notify()
	return edited, nil
}

func (d *Disks) create(r provision.CreateRequest) (provision.Volume, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v, p := d.pools.find(r.ID); p != nil {
		if v.Pool != r.Pool || v.Size != provision.RoundUp(r.Size, p.unit) || v.Inline != r.Inline || v.Source != r.Source || v.Content != contentOf(r) {
			return keep, fmt.Errorf("%w: volume %s exists with %d bytes in pool %s for %+v from %+v", provision.ErrConflict, v.ID, v.Size, v.Pool.Name, v.Inline, v.Source)
		}
		return v, nil
	}
	p := d.pools[r.Pool]
	if p == nil {
		return keep, fmt.Errorf("%w: %s", provision.ErrPoolMissing, r.Pool.Name)
	}
	if _, taken := p.foreign[r.ID]; taken {
		return keep, fmt.Errorf("%w: %s in pool %s is not Berth's", provision.ErrConflict, r.ID, r.Pool.Name)
	}
	if p.problem != "" {
		return keep, fmt.Errorf("%w: pool %s: %s", provision.ErrUnavailable, r.Pool.Name, p.problem)
	}
	filesystem, content, err := d.pools.source(r)
	if err != nil {
		return keep, err
	}
	size := provision.RoundUp(r.Size, p.unit)
	if err := r.Limits.Admit(p.figures(r.Pool), size); err != nil {
		return keep, err
	}
	v := provision.Volume{
		ID: r.ID, Pool: r.Pool, Size: size, Content: contentOf(r),
		Filesystem: filesystem, Inline: r.Inline, Source: r.Source, Claim: provision.ClaimOf(r.Labels),
	}
	p.volumes[r.ID], p.labels[r.ID], p.contents[r.ID], p.wipes[r.ID], p.tunings[r.ID] = v, maps.Clone(r.Labels), content, r.Wipe, r.Tuning
	d.notify()
	return v, nil
}

// contentOf returns the content of a new volume. A tree has its pool's name before its own, as
// a dataset has.
func contentOf(r provision.CreateRequest) provision.Content {
	if r.Tree != "" {
		return provision.Content{Source: strings.TrimPrefix(r.Pool.Name, provision.TraitsOf(r.Pool.Type).Prefix) + "/" + r.ID, Tree: r.Tree}
	}
	return provision.Content{Source: path.Join("/dev", r.Pool.Name, r.ID), Identity: provision.Identity("memory:" + r.ID)}
}

func (d *Disks) remove(id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ref, p := range d.pools {
		if _, foreign := p.foreign[id]; foreign {
			return fmt.Errorf("%w: %s in pool %s is not Berth's", provision.ErrConflict, id, ref.Name)
		}
	}
	_, p := d.pools.find(id)
	if p == nil {
		return nil
	}
	if d.openByID[id] > 0 {
		return fmt.Errorf("%w: %s", provision.ErrInUse, id)
	}
	delete(p.volumes, id)
	delete(p.labels, id)
	delete(p.wipes, id)
	delete(p.contents, id)
	delete(p.tunings, id)
	delete(d.copies, id)
	d.notify()
	return nil
}
