package memory

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/signal"
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

// Disks are the pools of one node with their contents.
type Disks struct {
	mu       sync.Mutex
	pools    pools
	changed  []signal.Signal
	openByID map[string]int
	formats  map[string]int
	copies   map[string]*held // by id of a volume
}

// NewDisks makes empty pools.
func NewDisks(pools ...PoolConfig) *Disks {
	d := &Disks{pools: map[provision.PoolRef]*pool{}, openByID: map[string]int{}, formats: map[string]int{}, copies: map[string]*held{}}
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
		tunings: map[string]provision.Tuning{},
		foreign: map[string]int64{},
	}
}

// RemovePool removes a pool with its contents.
func (d *Disks) RemovePool(ref provision.PoolRef) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pools, ref)
	d.notify()
}

// SetProblem sets the problem of a pool; an empty text clears it.
func (d *Disks) SetProblem(ref provision.PoolRef, problem string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.pools[ref]; p != nil {
		p.problem = problem
		d.notify()
	}
}

// SetFill sets how much of a thin pool holds data.
func (d *Disks) SetFill(ref provision.PoolRef, fill provision.Fill) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.pools[ref]; p != nil {
		p.fill = fill
		d.notify()
	}
}

// SetFillPercent sets how full a thin pool is, in percent of its data and its metadata.
func (d *Disks) SetFillPercent(ref provision.PoolRef, data, metadata int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.pools[ref]; p != nil {
		p.fill = provision.Fill{Data: p.total / 100 * int64(data), Metadata: metadata}
		d.notify()
	}
}

// PutForeign reserves space in a pool under a name, as a volume that is not Berth's does.
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

// RemoveForeign removes a name that PutForeign put, and frees its space.
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

// Formats returns how often a filesystem was made on a volume of an id.
func (d *Disks) Formats(id string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.formats[id]
}

// Device returns the volume that a device path, or the source of a tree, leads to.
func (d *Disks) Device(device string) (provision.Volume, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, _ := d.pools.find(path.Base(device))
	return v, v.Content.Source == device && device != ""
}

// Labels returns the labels a volume was created with.
func (d *Disks) Labels(id string) map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, p := d.pools.find(id); p != nil {
		return maps.Clone(p.labels[id])
	}
	return nil
}

// Wipe returns the Wipe that a volume was created with. Disks wipe nothing.
func (d *Disks) Wipe(id string) provision.Wipe {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, p := d.pools.find(id); p != nil {
		return p.wipes[id]
	}
	return ""
}

// Tuning returns the Tuning that a volume was created with, in a pool of any type.
func (d *Disks) Tuning(id string) provision.Tuning {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, p := d.pools.find(id); p != nil {
		return p.tunings[id]
	}
	return provision.Tuning{}
}

// watch returns a channel that is signalled when a pool changes.
func (d *Disks) watch() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := signal.New()
	d.changed = append(d.changed, c)
	return c
}

// notify signals all watchers. The caller holds mu.
func (d *Disks) notify() {
	for _, c := range d.changed {
		c.Set()
	}
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
