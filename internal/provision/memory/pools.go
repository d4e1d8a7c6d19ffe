package memory

import (
	"fmt"
	"iter"
	"maps"

	"berth.dev/berth/internal/provision"
)

// pools are all of a node, without the lock.
type pools map[provision.PoolRef]*pool

type pool struct {
	unit, total int64
	fill        provision.Fill
	media       string
	paths       []string
	problem     string
	managed     bool // by Ensure
	volumes     map[string]provision.Volume
	snapshots   map[string]provision.Snapshot
	contents    map[string]string // by id of a volume or a snapshot
	labels      map[string]map[string]string
	wipes       map[string]provision.Wipe
	tunings     map[string]provision.Tuning
	foreign     map[string]int64
}

// find returns a volume and its pool; nil if there is none.
func (d pools) find(id string) (provision.Volume, *pool) {
	for _, p := range d {
		if v, ok := p.volumes[id]; ok {
			return v, p
		}
	}
	return provision.Volume{}, nil
}

// source returns the filesystem and the content of the source that a new volume is a copy of.
func (d pools) source(r provision.CreateRequest) (filesystem, content string, err error) {
	if r.Source == (provision.Source{}) {
		return "", "", nil
	}
	s, p := d.findSnapshot(r.Source.Snapshot)
	if r.Source.Volume != "" {
		var v provision.Volume
		v, p = d.find(r.Source.Volume)
		s = provision.Snapshot{ID: v.ID, Pool: v.Pool, Size: v.Size, Filesystem: v.Filesystem}
	}
	switch {
	case !copies(r.Pool):
		return "", "", fmt.Errorf("%w: pool %s makes no copies", provision.ErrUnsupported, r.Pool.Name)
	case p == nil:
		return "", "", fmt.Errorf("%w: source %s%s", provision.ErrNotFound, r.Source.Snapshot, r.Source.Volume)
	}
	return s.Filesystem, p.contents[s.ID], r.Fits(s.Pool, s.Size)
}

// findSnapshot returns a snapshot and its pool; nil if there is none.
func (d pools) findSnapshot(id string) (provision.Snapshot, *pool) {
	for _, p := range d {
		if s, ok := p.snapshots[id]; ok {
			return s, p
		}
	}
	return provision.Snapshot{}, nil
}

// figures returns the pool as reported, without its volumes and snapshots.
func (p *pool) figures(ref provision.PoolRef) provision.Pool {
	return provision.Pool{
		PoolRef: ref, Total: p.total, Foreign: sum(maps.Values(p.foreign)), Free: p.free(), Unit: p.unit,
		Fill: p.fill, Media: p.media, Paths: p.paths, Problem: p.problem,
	}
}

// free computes the free bytes each time: a stored number could drift.
func (p *pool) free() int64 {
	free := p.total - sum(maps.Values(p.foreign))
	for _, v := range p.volumes {
		free -= v.Size
	}
	for _, s := range p.snapshots {
		free -= s.Allocated
	}
	return free
}

func sum(sizes iter.Seq[int64]) (total int64) {
	for s := range sizes {
		total += s
	}
	return total
}
