package zfs

import "berth.dev/berth/internal/provision"

// Unit of allocation: sizes are rounded up to it. Every block size of a zvol divides
// it.
const Unit = 4 << 20

// Charge is what a whole number of units takes of a zpool. ZFS reserves about as
// much for a zvol: its data and, at 8 KiB a block, a 32nd for the pointers to it.
func Charge(size int64) int64 { return size + size/32 }

// allowance is what of a zpool of so many bytes is set aside for what ZFS itself
// needs beyond what is charged. It moves all the time, and is not reported as long as
// it is within the allowance.
func allowance(capacity int64) int64 { return 16<<20 + capacity/64 }

// significant is when what a filesystem that is not Berth's holds counts as foreign,
// and not as a bit of metadata.
const significant = 1 << 20

// units of size that so many raw bytes hold.
func unitsIn(raw int64) int64 {
	if raw <= 0 {
		return 0
	}
	return raw / Charge(Unit) * Unit
}

// unitsFor is the size in units that holds so many raw bytes.
func unitsFor(raw int64) int64 {
	if raw <= 0 {
		return 0
	}
	return (raw + Charge(Unit) - 1) / Charge(Unit) * Unit
}

// promised is what Berth promised in the zpool, or below one of its pools alone: to
// volumes their size, to snapshots what they hold.
func (z *zpool) promised(parent string) (size int64) {
	for _, d := range z.datasets {
		if parent == "" || d.parent == parent {
			size += d.promised()
		}
	}
	return size
}

func (d *dataset) promised() (size int64) {
	if d.isVolume() {
		size = d.size
	}
	for _, s := range d.snapshots {
		if s.id != "" {
			size += s.allocated
		}
	}
	return size
}

// figures of one pool, without what is in it. What all others than its own volumes
// and snapshots take is foreign, also Berth's in another pool of the zpool.
func (z *zpool) figures(parent string) provision.Pool { return z.figuresIf(parent, z.promised) }

// figuresIf are the figures of a pool if so much of it, or of all with no name, were promised.
func (z *zpool) figuresIf(parent string, promised func(parent string) int64) provision.Pool {
	total := unitsIn(z.capacity)
	free := total - unitsFor(z.foreign) - promised("")
	own := promised(parent)
	if quota := z.parents[parent]; quota > 0 && quota < z.capacity {
		total = unitsIn(quota)
		free = min(free, total-own)
	}
	return provision.Pool{PoolRef: poolRef(parent), Total: total, Foreign: total - free - own, Free: free, Unit: Unit}
}

// reckon sets the zpool's figures from a report.
func (z *zpool) reckon(rows []row) {
	self := map[string]int64{} // what each dataset takes without those below
	for _, r := range rows {
		if r.kind == kindSnapshot {
			continue
		}
		self[r.name] += r.used
		if parent, _ := cutLast(r.name); parent != "" {
			self[parent] -= r.used
		}
	}
	var overhead int64
	for name, used := range self {
		d := z.datasets[name]
		switch {
		case d != nil:
			overhead += max(0, used-Charge(d.promised()))
		case name != z.name && used >= significant:
			z.foreign += used
		default:
			overhead += used
		}
	}
	whole := rows[0].used + rows[0].available
	set := allowance(whole)
	z.capacity, z.available = whole-set, rows[0].available
	z.foreign += max(0, overhead-set)
}

// admit returns nil if a pool takes so many more bytes for whoever has these limits, beside
// what is being made.
func (z *zpool) admit(parent string, l provision.Limits, more int64) error {
	all := func(parent string) int64 { return z.promised(parent) + z.held(parent) }
	return l.Admit(z.figuresIf(parent, all), more)
}
