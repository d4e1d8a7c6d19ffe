package zpool

import "berth.dev/berth/internal/provision"

// Unit of allocation: sizes are rounded up to it. Every block size of a zvol divides
// it.
const Unit = 4 << 20

// Charge returns how many bytes of a zpool a whole number of units takes. ZFS reserves about
// as much for a zvol: its data and, at 8 KiB a block, a 32nd for the pointers to it.
func Charge(size int64) int64 { return size + size/32 }

// allowance returns how many bytes of a zpool Berth sets aside for ZFS itself, which needs
// more than is charged. That need changes all the time, and is not reported as long as it is
// within the allowance.
func allowance(capacity int64) int64 { return 16<<20 + capacity/64 }

// significant is how many bytes a filesystem that is not Berth's must hold to count as
// foreign, and not as a bit of metadata.
const significant = 1 << 20

// unitsIn returns the size, in whole units, that so many raw bytes hold.
func unitsIn(raw int64) int64 {
	if raw <= 0 {
		return 0
	}
	return raw / Charge(Unit) * Unit
}

// unitsFor returns the size, in whole units, that holds so many raw bytes.
func unitsFor(raw int64) int64 {
	if raw <= 0 {
		return 0
	}
	return (raw + Charge(Unit) - 1) / Charge(Unit) * Unit
}

// promised returns how many bytes Berth promised in one pool, or in the whole zpool if the
// name is empty: to volumes their size, to snapshots as much as they hold.
func (z *Facts) promised(parent string) (size int64) {
	for _, d := range z.Datasets {
		if parent == "" || d.Parent == parent {
			size += d.promised()
		}
	}
	for _, c := range z.Copies {
		if parent == "" || c.Parent == parent {
			size += CopiesIn(z).keeps(c)
		}
	}
	return size
}

func (d *Dataset) promised() (size int64) {
	if d.IsVolume() {
		size = d.size
	}
	for _, s := range d.snapshots {
		if s.id != "" {
			size += s.allocated
		}
	}
	return size
}

// figures returns the figures of one pool, without its volumes and snapshots. Room that others
// take is foreign, also the room of Berth's volumes in another pool of the zpool.
func (z *Facts) figures(parent string) provision.Pool { return z.figuresIf(parent, z.promised) }

// figuresIf returns the figures that a pool would have with other promises. promised returns the
// bytes that are promised in a pool, or in the whole zpool for the empty name.
func (z *Facts) figuresIf(parent string, promised func(parent string) int64) provision.Pool {
	total := unitsIn(z.capacity)
	free := total - unitsFor(z.foreign) - promised("")
	own := promised(parent)
	if quota := z.Parents[parent]; quota > 0 && quota < z.capacity {
		total = unitsIn(quota)
		free = min(free, total-own)
	}
	return provision.Pool{PoolRef: PoolRef(parent), Total: total, Foreign: total - free - own, Free: free, Unit: Unit}
}

// reckon sets the zpool's figures from a report.
func (z *Facts) reckon(rows []Row) {
	self := map[string]int64{} // bytes that each dataset takes without those below
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
		d := z.Datasets[name]
		switch {
		case d != nil && CopiesIn(z).copyOf(d).container:
			CopiesIn(z).copyOf(d).kept += max(0, used-Charge(d.promised()))
		case d != nil:
			overhead += max(0, used-Charge(d.promised()))
		case name != z.Name && used >= significant:
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

// admit returns nil if a pool has room for so many more bytes under these limits, besides the
// room that is promised to changes under way.
func (z *Facts) admit(parent string, l provision.Limits, more int64) error {
	all := func(parent string) int64 { return z.promised(parent) + z.Promised(parent) }
	return l.Admit(z.figuresIf(parent, all), more)
}
