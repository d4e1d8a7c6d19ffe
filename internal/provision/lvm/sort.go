package lvm

import "strings"

// Where the flags of a logical volume say that its device cannot be written, what state a
// snapshot is in, and that a thin pool zeroes blocks.
const (
	writesAt = 1
	stateAt  = 4
	zeroesAt = 7
)

// flag is one of a logical volume's flags; '-' if it has not so many.
func (lv logicalVolume) flag(at int) byte {
	if len(lv.Attr) <= at {
		return '-'
	}
	return lv.Attr[at]
}

// broken says that a copy-on-write snapshot was given up, suspended or not.
func (lv logicalVolume) broken() bool { return lv.flag(stateAt) == 'I' || lv.flag(stateAt) == 'S' }

// is says whether a logical volume is made of all these things. The words of its
// layout tell; the flag of its type does not, since being the origin of a snapshot
// goes before being thin.
func (lv logicalVolume) is(words ...string) bool {
	layout := "," + lv.Layout + ","
	for _, w := range words {
		if !strings.Contains(layout, ","+w+",") {
			return false
		}
	}
	return true
}

// thin is the pool of a thin volume; empty for any other.
func (lv logicalVolume) thin() string {
	if lv.is("thin", "sparse") {
		return lv.Pool
	}
	return ""
}

// sort takes a group's logical volumes in: pools, what is Berth's and all others.
func (g *group) sort(lvs []logicalVolume) {
	thin := map[string]string{}
	for _, lv := range lvs {
		g.uuids[lv.Name] = mappingUUID(g.uuid, lv.UUID)
		thin[lv.Name] = lv.thin()
		if lv.is("thin", "pool") {
			g.pools[lv.Name] = &thinPool{
				size: int64(lv.Size), active: lv.Active == 1, health: beyondKernel(lv.Health), managed: managed(lv.Name, lv.Tags),
				zeroing: lv.flag(zeroesAt) == 'z',
			}
		}
	}
	for _, lv := range lvs {
		tags := parseTags(lv.Name, lv.Tags)
		_, pool := g.pools[lv.Name]
		carved := tags.kind == isRemnant || tags.kind == isCow || tags.copying // which no thin one is
		if pool || tags.kind == foreign || carved && lv.thin() != "" {
			g.sortOther(lv, thin[lv.Origin])
			continue
		}
		g.sortOwn(lv, tags)
	}
}

// sortOwn takes in what is Berth's.
func (g *group) sortOwn(lv logicalVolume, tags record) {
	c := carved{
		pool: lv.thin(), size: int64(lv.Size), filesystem: tags.filesystem,
		active: lv.Active == 1, open: lv.Open == 1, suspended: lv.Suspended == 1, health: lv.Health,
		copying: tags.copying, readOnly: lv.flag(writesAt) == 'r', wipe: tags.wipe, wiped: tags.wiped,
	}
	if c.pool == "" {
		g.foreign -= c.size
	}
	if c.copying {
		g.pendingOf(lv.Name)
	}
	switch tags.kind {
	case isCow:
		g.sortCow(lv, tags)
	case isSnapshot:
		g.snapshots[lv.Name] = &snapshot{carved: c, of: tags.of, taken: tags.taken}
	case isRemnant:
		g.wiping[lv.Name] = &remnant{
			size: c.size, how: tags.wipe, wiped: tags.wiped, inline: tags.inline, strange: strange(lv.Layout), suspended: c.suspended,
		}
	default:
		v := &volume{carved: c, inline: tags.inline, source: tags.source, growing: c.size < tags.size}
		v.size = max(c.size, tags.size)
		g.volumes[lv.Name] = v
	}
}

// sortCow takes in a copy-on-write snapshot. One that is of nothing was split from its
// volume, or never got that far: it may hold what the volume held.
func (g *group) sortCow(lv logicalVolume, tags record) {
	if lv.Origin == "" {
		g.wiping[lv.Name] = &remnant{
			size: int64(lv.Size), how: tags.wipe, wiped: tags.wiped, strange: strange(lv.Layout), suspended: lv.Suspended == 1,
		}
		return
	}
	g.pendingOf(tags.cow).cow = &cow{
		of: lv.Origin, size: int64(lv.Size), wipe: tags.wipe, broken: lv.broken(), suspended: lv.Suspended == 1,
	}
}

// sortOther takes in what is not Berth's, with the thin pool of its origin.
func (g *group) sortOther(lv logicalVolume, originPool string) {
	g.others[lv.Name] = true
	thin := lv.thin()
	if p := g.pools[thin]; p != nil {
		p.foreign += int64(lv.Size)
	}
	// A thin snapshot outlives its origin in the same pool; what else has an origin
	// goes with it.
	if lv.Origin != "" && (thin == "" || thin != originPool) {
		g.dependents[lv.Origin] = lv.Name
	}
}

// beyondKernel is LVM's word for the health of a thin pool, unless it is one that LVM
// has from the kernel: that is asked directly, and more often.
func beyondKernel(health string) string {
	switch health {
	case "failed", "out_of_data", "metadata_read_only":
		return ""
	}
	return health
}
