package lvm

import "berth.dev/berth/internal/provision"

const (
	// minChunk is what a thin pool gives out at a time: little, so that a snapshot costs
	// little, but for pools whose metadata would become large.
	minChunk = 64 << 10
	maxChunk = 1 << 30 // of LVM's
	// chunkRecord is about what the metadata needs for a chunk.
	chunkRecord = 64
	// manyRecords is from where on chunks are larger instead.
	manyRecords = 512 << 20
	// minMetadata of a pool, however small.
	minMetadata = 8 << 20
	// maxMetadata is what LVM allows, nearly.
	maxMetadata = 15<<30 + 3<<28
	// metadataBlock is what the kernel counts metadata in.
	metadataBlock = 4 << 10
)

// layout is how a thin pool is made, in bytes.
type layout struct{ data, metadata, chunk int64 }

// takes is what it takes of the group: LVM keeps as much metadata again, to repair with.
func (l layout) takes() int64 { return l.data + 2*l.metadata }

// layout of a pool of so many percent of the group. Its metadata has room for twice the
// chunks that there are: for snapshots, and for data to come.
func (g *group) layout(percent int) layout {
	l := layout{data: g.share(percent), chunk: minChunk}
	for l.data/l.chunk*chunkRecord > manyRecords && l.chunk < maxChunk {
		l.chunk *= 2
	}
	l.metadata = min(g.round(max(2*(l.data/l.chunk*chunkRecord), minMetadata)), g.floor(maxMetadata))
	l.data = min(l.data, g.floor(g.total-2*l.metadata))
	return l
}

// share of the group in whole extents.
func (g *group) share(percent int) int64 { return g.part(g.total, percent) }

// part is so many percent of a size in whole extents.
func (g *group) part(size int64, percent int) int64 {
	return size / g.unit * int64(percent) / 100 * g.unit
}

func (g *group) floor(size int64) int64 { return size / g.unit * g.unit }

// metadataSize of a pool; 0 while the kernel does not tell.
func (p *thinPool) metadataSize() int64 {
	return int64(p.kernel.metadata.total) * metadataBlock //nolint:gosec // the kernel's bound is 16 GiB
}

// extended is how large that must be of which so much is taken.
func (g *group) extended(size int64, u use, e provision.Extension) int64 {
	if e == (provision.Extension{}) || u.total == 0 {
		return size
	}
	taken := int64(u.of(uint64(size))) //nolint:gosec // at most size
	for taken >= size/100*int64(e.At) {
		size += max(g.part(size, e.By), g.unit)
	}
	return size
}

// room that the data of a pool may take of the group, in whole extents: all but what its
// metadata needs to be extended once. A pool that lacks data stops writes; one that lacks
// metadata has to be repaired.
func (g *group) room(p *thinPool, e provision.Extension) int64 {
	reserve := int64(0)
	if e != (provision.Extension{}) {
		reserve = 2 * max(g.part(p.metadataSize(), e.By), g.unit)
	}
	return max(g.floor(g.free("")-reserve), 0)
}

// unfit is empty, or why a thin pool is not changed. To be extended is the way back for
// one that is out of space, and for no other.
func (p *thinPool) unfit(name string) string {
	outOfData := p.kernel
	outOfData.mode = modeWorks
	switch {
	case p.health != "":
		return "LVM reports it as " + p.health
	case p.suspended:
		return suspendedPool(name)
	case p.refused != "":
		return p.refused
	case p.kernel.mode == modeOutOfData:
		return outOfData.trouble(name)
	}
	return p.kernel.trouble(name)
}
