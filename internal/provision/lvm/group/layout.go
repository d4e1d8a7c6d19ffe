package group

import "berth.dev/berth/internal/provision"

const (
	// minChunk is how many bytes a thin pool gives out at a time: few, so that a snapshot costs
	// little. Pools whose metadata would become large have larger chunks.
	minChunk = 64 << 10
	maxChunk = 1 << 30 // LVM's limit
	// chunkRecord is about how many bytes of metadata a chunk needs.
	chunkRecord = 64
	// manyRecords is how many bytes the records of chunks may take. Beyond that the chunks become
	// larger instead.
	manyRecords = 512 << 20
	// minMetadata of a pool in bytes, however small the pool.
	minMetadata = 8 << 20
	// maxMetadata is slightly less than LVM allows.
	maxMetadata = 15<<30 + 3<<28
	// metadataBlock is the unit in which the kernel counts metadata.
	metadataBlock = 4 << 10
)

// layout holds the sizes of a thin pool to be made, in bytes.
type layout struct{ data, metadata, chunk int64 }

// takes returns how many bytes of the group it takes. LVM keeps as much metadata again, for
// repairs.
func (l layout) takes() int64 { return l.data + 2*l.metadata }

// extents describe the extents of a group: unit is the size of one, and total that of all, in
// bytes.
type extents struct{ unit, total int64 }

// layout of a pool of so many percent of the group. Its metadata has room for twice as many
// chunks as the pool has: for snapshots, and for later growth.
func (x extents) layout(percent int) layout {
	l := layout{data: x.share(percent), chunk: minChunk}
	for l.data/l.chunk*chunkRecord > manyRecords && l.chunk < maxChunk {
		l.chunk *= 2
	}
	l.metadata = min(x.round(max(2*(l.data/l.chunk*chunkRecord), minMetadata)), x.floor(maxMetadata))
	l.data = min(l.data, x.floor(x.total-2*l.metadata))
	return l
}

// share of the group in whole extents.
func (x extents) share(percent int) int64 { return x.part(x.total, percent) }

// part is so many percent of a size in whole extents.
func (x extents) part(size int64, percent int) int64 {
	return size / x.unit * int64(percent) / 100 * x.unit
}

// floor and round bring a size to whole extents, down and up.
func (x extents) floor(size int64) int64 { return size / x.unit * x.unit }
func (x extents) round(size int64) int64 { return provision.RoundUp(size, x.unit) }

// metadataSize of a pool; 0 while the kernel does not tell.
func (p *ThinPool) metadataSize() int64 {
	return int64(p.Kernel.metadata.total) * metadataBlock //nolint:gosec // the kernel's bound is 16 GiB
}

// extended returns the size in bytes to which the data or the metadata of a pool must be extended
// if u of it is taken.
func (x extents) extended(size int64, u use, e provision.Extension) int64 {
	if e == (provision.Extension{}) || u.total == 0 {
		return size
	}
	taken := int64(u.of(uint64(size))) //nolint:gosec // at most size
	for taken >= size/100*int64(e.At) {
		size += max(x.part(size, e.By), x.unit)
	}
	return size
}

// room returns how many bytes of the group the data of a pool may take, in whole extents: all
// free ones but those that one extension of its metadata needs. A pool that lacks data stops
// writes; one that lacks metadata has to be repaired.
func room(g *Facts, p *ThinPool, e provision.Extension) int64 {
	reserve := int64(0)
	if e != (provision.Extension{}) {
		reserve = 2 * max(g.part(p.metadataSize(), e.By), g.unit)
	}
	return max(g.floor(g.free("")-reserve), 0)
}

// unfit is empty, or says why a thin pool is not changed. A pool that is out of space is fit,
// since an extension repairs it. No other trouble is repaired that way.
func (p *ThinPool) unfit(name string) string {
	outOfData := p.Kernel
	outOfData.mode = modeWorks
	switch {
	case p.health != "":
		return "LVM reports it as " + p.health
	case p.Suspended:
		return suspendedPool(name)
	case p.Refused != "":
		return p.Refused
	case p.Kernel.mode == modeOutOfData:
		return outOfData.trouble(name)
	}
	return p.Kernel.trouble(name)
}
