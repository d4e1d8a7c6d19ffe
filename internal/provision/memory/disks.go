package memory

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"sync"

	"berth.dev/berth/internal/provision"
)

// PoolConfig describes an empty pool.
type PoolConfig struct {
	provision.PoolRef
	// Total bytes, a multiple of Unit.
	Total int64
	// Unit defaults to 4 MiB.
	Unit int64
	// Media and Paths of a whole disk.
	Media string
	Paths []string
}

// Disks are the pools of one node and what is in them.
type Disks struct {
	mu       sync.Mutex
	pools    map[provision.PoolRef]*pool
	changed  []chan struct{}
	openByID map[string]int
	formats  map[string]int
}

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
	zfs         map[string]provision.ZFSOptions
	foreign     map[string]int64
}

// NewDisks makes empty pools.
func NewDisks(pools ...PoolConfig) *Disks {
	d := &Disks{pools: map[provision.PoolRef]*pool{}, openByID: map[string]int{}, formats: map[string]int{}}
	for _, c := range pools {
		d.AddPool(c)
	}
	return d
}

// AddPool makes an empty pool, as a new volume group would appear.
func (d *Disks) AddPool(c PoolConfig) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pools[c.PoolRef] = newPool(c)
	d.notify()
}

// defaultUnit of a pool.
const defaultUnit = 4 << 20

func newPool(c PoolConfig) *pool {
	return &pool{
		unit:    cmp.Or(c.Unit, defaultUnit),
		total:   c.Total,
		media:   c.Media,
		paths:   c.Paths,
		volumes: map[string]provision.Volume{},

		snapshots: map[string]provision.Snapshot{},
		contents:  map[string]string{},

		labels:  map[string]map[string]string{},
		wipes:   map[string]provision.Wipe{},
		zfs:     map[string]provision.ZFSOptions{},
		foreign: map[string]int64{},
	}
}

// RemovePool takes a pool away with all that is in it.
func (d *Disks) RemovePool(ref provision.PoolRef) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pools, ref)
	d.notify()
}

// SetProblem gives a pool a problem, or takes it away with an empty text.
func (d *Disks) SetProblem(ref provision.PoolRef, problem string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.pools[ref]; p != nil {
		p.problem = problem
		d.notify()
	}
}

// SetFill says how much of a thin pool holds data.
func (d *Disks) SetFill(ref provision.PoolRef, fill provision.Fill) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.pools[ref]; p != nil {
		p.fill = fill
		d.notify()
	}
}

// SetFillPercent says how full a thin pool is, in percent of its data and its metadata.
func (d *Disks) SetFillPercent(ref provision.PoolRef, data, metadata int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.pools[ref]; p != nil {
		p.fill = provision.Fill{Data: p.total / 100 * int64(data), Metadata: metadata}
		d.notify()
	}
}

// PutForeign puts something that is not Berth's into a pool.
func (d *Disks) PutForeign(ref provision.PoolRef, name string, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.pools[ref]
	if p == nil {
		return fmt.Errorf("%w: %s", provision.ErrPoolMissing, ref.Name)
	}
	size = provision.RoundUp(size, p.unit)
	if size > p.free() {
		return fmt.Errorf("%w in pool %s", provision.ErrNoSpace, ref.Name)
	}
	p.foreign[name] = size
	d.notify()
	return nil
}

// RemoveForeign takes away what PutForeign put.
func (d *Disks) RemoveForeign(ref provision.PoolRef, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.pools[ref]; p != nil {
		delete(p.foreign, name)
		d.notify()
	}
}

// Open opens the device of a volume, as a mount or a program does; the result
// closes it again.
func (d *Disks) Open(id string) (closeDevice func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.openByID[id]++
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.openByID[id]--
	})
}

// Formats is how often a filesystem was made on a volume of an id.
func (d *Disks) Formats(id string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.formats[id]
}

// Device returns the volume a device path leads to.
func (d *Disks) Device(device string) (provision.Volume, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, _ := d.find(path.Base(device))
	return v, v.Device == device && device != ""
}

// Labels returns the labels a volume was created with.
func (d *Disks) Labels(id string) map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, p := d.find(id); p != nil {
		return maps.Clone(p.labels[id])
	}
	return nil
}

// Wipe returns what a volume was created with. Nothing has to be wiped here.
func (d *Disks) Wipe(id string) provision.Wipe {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, p := d.find(id); p != nil {
		return p.wipes[id]
	}
	return ""
}

// ZFS returns what a volume was created with, whatever its pool.
func (d *Disks) ZFS(id string) provision.ZFSOptions {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, p := d.find(id); p != nil {
		return p.zfs[id]
	}
	return provision.ZFSOptions{}
}

// watch returns a channel that is signalled when a pool changes.
func (d *Disks) watch() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := make(chan struct{}, 1)
	d.changed = append(d.changed, c)
	return c
}

// notify is called with mu held.
func (d *Disks) notify() {
	for _, c := range d.changed {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// find is called with mu held.
func (d *Disks) find(id string) (provision.Volume, *pool) {
	for _, p := range d.pools {
		if v, ok := p.volumes[id]; ok {
			return v, p
		}
	}
	return provision.Volume{}, nil
}

func (d *Disks) report() []provision.Pool {
	d.mu.Lock()
	defer d.mu.Unlock()
	var report []provision.Pool
	for ref, p := range d.pools {
		figures := p.figures(ref)
		figures.Volumes = slices.SortedFunc(maps.Values(p.volumes), func(a, b provision.Volume) int { return cmp.Compare(a.ID, b.ID) })
		figures.Snapshots = p.sortedSnapshots()
		report = append(report, figures)
	}
	slices.SortFunc(report, func(a, b provision.Pool) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
	})
	return report
}

// figures are the pool as reported, but for its volumes.
func (p *pool) figures(ref provision.PoolRef) provision.Pool {
	return provision.Pool{
		PoolRef: ref, Total: p.total, Foreign: sum(maps.Values(p.foreign)), Free: p.free(), Unit: p.unit,
		Fill: p.fill, Media: p.media, Paths: p.paths, Problem: p.problem,
	}
}

// free is never kept, so that it cannot drift.
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
