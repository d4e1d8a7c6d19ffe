package group

import "strings"

// Positions of the flags of a logical volume that say that its device cannot be written, what
// state a snapshot is in, and that a thin pool zeroes blocks.
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

// is says whether a logical volume has all these words in its layout. The flag of its type is no
// use: for a thin volume that is the origin of a snapshot it says origin and not thin.
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

// sorter takes the logical volumes that LVM reported into a group.
type sorter struct{ *Facts }

// sort takes in a group's logical volumes: pools, Berth's own, and all others.
func (g sorter) sort(lvs []logicalVolume) {
	thin := map[string]string{}
	for _, lv := range lvs {
		g.UUIDs[lv.Name] = mappingUUID(g.UUID, lv.UUID)
		thin[lv.Name] = lv.thin()
		if lv.is("thin", "pool") {
			g.Pools[lv.Name] = &ThinPool{
				size: int64(lv.Size), Active: lv.Active == 1, health: beyondKernel(lv.Health), managed: managed(lv.Name, lv.Tags),
				zeroing: lv.flag(zeroesAt) == 'z',
			}
		}
	}
	for _, lv := range lvs {
		tags := parseTags(lv.Name, lv.Tags)
		_, pool := g.Pools[lv.Name]
		carved := tags.kind == isRemnant || tags.kind == isCow || tags.copying // which no thin one is
		if pool || tags.kind == foreign || carved && lv.thin() != "" {
			g.sortOther(lv, thin[lv.Origin])
			continue
		}
		g.sortOwn(lv, tags)
	}
}

// sortOwn takes in a logical volume of Berth's.
func (g sorter) sortOwn(lv logicalVolume, tags record) {
	c := carved{
		Pool: lv.thin(), size: int64(lv.Size), filesystem: tags.filesystem,
		Active: lv.Active == 1, open: lv.Open == 1, Suspended: lv.Suspended == 1, health: lv.Health,
		copying: tags.copying, readOnly: lv.flag(writesAt) == 'r', Wipe: tags.wipe, wiped: tags.wiped,
	}
	if c.Pool == "" {
		g.foreign -= c.size
	}
	if c.copying {
		g.pendingOf(lv.Name)
	}
	switch tags.kind {
	case isCow:
		g.sortCow(lv, tags)
	case isSnapshot:
		g.Snapshots[lv.Name] = &snapshot{carved: c, of: tags.of, taken: tags.taken}
	case isRemnant:
		g.Wiping[lv.Name] = &Remnant{
			size: c.size, How: tags.wipe, Wiped: tags.wiped, inline: tags.inline, strange: strange(lv.Layout), Suspended: c.Suspended,
		}
	default:
		v := &volume{carved: c, inline: tags.inline, source: tags.source, claim: tags.claimOf(), Growing: c.size < tags.size}
		v.size = max(c.size, tags.size)
		g.Volumes[lv.Name] = v
	}
}

// sortCow takes in a copy-on-write snapshot. One without an origin was split from its volume, or
// was never attached to one: it may hold the volume's data.
func (g sorter) sortCow(lv logicalVolume, tags record) {
	if lv.Origin == "" {
		g.Wiping[lv.Name] = &Remnant{
			size: int64(lv.Size), How: tags.wipe, Wiped: tags.wiped, strange: strange(lv.Layout), Suspended: lv.Suspended == 1,
		}
		return
	}
	g.pendingOf(tags.cow).Cow = &cow{
		of: lv.Origin, size: int64(lv.Size), wipe: tags.wipe, broken: lv.broken(), Suspended: lv.Suspended == 1,
	}
}

// sortOther takes in a logical volume that is not Berth's, with the thin pool of its origin.
func (g sorter) sortOther(lv logicalVolume, originPool string) {
	g.Others[lv.Name] = true
	thin := lv.thin()
	if p := g.Pools[thin]; p != nil {
		p.foreign += int64(lv.Size)
	}
	// A thin snapshot outlives its origin in the same pool. LVM removes any other logical volume
	// that has an origin together with the origin.
	if lv.Origin != "" && (thin == "" || thin != originPool) {
		g.dependents[lv.Origin] = lv.Name
	}
}

// beyondKernel returns LVM's word for the health of a thin pool; empty if LVM has it from the
// kernel, which Berth asks directly, and more often.
func beyondKernel(health string) string {
	switch health {
	case "failed", "out_of_data", "metadata_read_only":
		return ""
	}
	return health
}
