package group

import (
	"fmt"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/quantity"
	"berth.dev/berth/internal/run"
)

// Wish is the request of a PoolClass for a group at a time. Group is nil if no such group is
// known.
type Wish struct {
	provision.PoolWish
	Group *Facts
	Now   time.Time
}

// PlanGroup makes a group and lets it grow. A group that others made is used as it is.
func (w Wish) PlanGroup() Intent {
	g, name := w.Group, w.Pool.Name
	switch {
	case g == nil && len(w.Disks) == 0:
		return Stands(provision.PoolAwaitsDisks, "there is no volume group %s, and no empty disk to make it of", name)
	case g == nil:
		s := Stands(provision.PoolMade, "volume group %s was made", name)
		s.Disks, s.Command = w.Disks, func(t Tool, nodes []string) run.Command { return t.makeGroupCommand(name, nodes) }
		return s
	case g.Trouble(w.Now) != "":
		return Stands(provision.PoolTroubled, "volume group %s is not changed: %s", name, g.Trouble(w.Now))
	case !g.managed:
		return Stands(provision.PoolForeign, "volume group %s was not made by Berth: it is used as it is, and no disk is added to it", name)
	case len(w.Disks) == 0:
		return Stands(provision.PoolAsAsked, "volume group %s has %d disks", name, len(g.Devices))
	}
	s := Stands(provision.PoolGrown, "volume group %s was grown", name)
	s.Disks, s.Command = w.Disks, func(t Tool, nodes []string) run.Command { return t.growGroupCommand(name, nodes) }
	return s
}

// PlanPool makes a thin pool, extends it when it fills up, and keeps it at its share of a group
// that grows. An extension of metadata or data that fills up comes first.
func (w Wish) PlanPool() Intent {
	g := w.Group
	name, thin := Split(w.Pool)
	switch {
	case g == nil:
		return Stands(provision.PoolAwaitsDisks, "there is no volume group %s for thin pool %s", name, w.Pool.Name)
	case g.Trouble(w.Now) != "":
		return Stands(provision.PoolTroubled, "thin pool %s is not changed: %s", w.Pool.Name, g.Trouble(w.Now))
	case g.Pools[thin] == nil && w.SizePercent == 0:
		return Stands(provision.PoolAbsent, "there is no thin pool %s, and none is to be made", w.Pool.Name)
	case g.Pools[thin] == nil:
		return w.make()
	}
	p := g.Pools[thin]
	if why := p.unfit(w.Pool.Name); why != "" {
		return Stands(provision.PoolTroubled, "thin pool %s is not changed: %s", w.Pool.Name, why)
	}
	for _, plan := range []func(*ThinPool) (Intent, bool){w.metadata, w.data, w.share} {
		if s, due := plan(p); due {
			return s
		}
	}
	return Stands(provision.PoolAsAsked, "thin pool %s has %s", w.Pool.Name, quantity.Bytes(p.size))
}

// make makes a thin pool, but only in a group that Berth made. Berth cannot know which other
// logical volumes the group of others has or shall have.
func (w Wish) make() Intent {
	g := w.Group
	_, thin := Split(w.Pool)
	l := g.layout(w.SizePercent)
	switch taken := g.Others[thin] || g.Find(thin) != nil || g.Wiping[thin] != nil; {
	case taken:
		return Stands(provision.PoolForeign, "logical volume %s is no thin pool", w.Pool.Name)
	case !g.managed:
		return Stands(provision.PoolForeign, "thin pool %s is not made: volume group %s was not made by Berth", w.Pool.Name, g.Name)
	case l.data < g.unit || l.takes() > g.free(""):
		return Stands(provision.PoolNoRoom, "thin pool %s needs %s with its metadata, and volume group %s has %s free",
			w.Pool.Name, quantity.Bytes(l.takes()), g.Name, quantity.Bytes(g.free("")))
	}
	s := Stands(provision.PoolMade, "thin pool %s was made with %s", w.Pool.Name, quantity.Bytes(l.data))
	s.Target, s.Command = PoolTarget, func(t Tool, _ []string) run.Command { return t.makePoolCommand(w.Pool.Name, l) }
	return s
}

// metadata extends metadata that fills up.
func (w Wish) metadata(p *ThinPool) (s Intent, due bool) {
	g := w.Group
	size := p.metadataSize()
	wanted := g.extended(size, p.Kernel.metadata, w.Extension)
	if wanted <= size {
		return s, false
	}
	fill := fmt.Sprintf("the metadata of thin pool %s is filled to %d%%", w.Pool.Name, p.Kernel.metadata.of(100))
	// The spare grows with the metadata.
	more := min(wanted-size, g.floor(g.free("")/2), g.floor(maxMetadata-size))
	if more < g.unit {
		return Stands(provision.PoolNoRoom, "%s, and it cannot be extended: volume group %s has %s free", fill, g.Name, quantity.Bytes(g.free(""))), true
	}
	s = Stands(provision.PoolExtended, "%s, and was extended by %s", fill, quantity.Bytes(more))
	s.Command = func(t Tool, _ []string) run.Command { return t.extendMetadataCommand(w.Pool.Name, more) }
	return s, true
}

// data extends data that fills up.
func (w Wish) data(p *ThinPool) (s Intent, due bool) {
	g := w.Group
	wanted := g.extended(p.size, p.Kernel.data, w.Extension)
	if wanted <= p.size {
		return s, false
	}
	fill := fmt.Sprintf("thin pool %s is filled to %d%%", w.Pool.Name, p.Kernel.data.of(100))
	next := min(wanted, p.size+room(g, p, w.Extension))
	if next <= p.size {
		return Stands(provision.PoolNoRoom, "%s, and cannot be extended: volume group %s has %s free, which its metadata may need",
			fill, g.Name, quantity.Bytes(g.free(""))), true
	}
	s = Stands(provision.PoolExtended, "%s, and was extended from %s to %s", fill, quantity.Bytes(p.size), quantity.Bytes(next))
	s.Command = func(t Tool, _ []string) run.Command { return t.extendCommand(w.Pool.Name, next) }
	return s, true
}

// share keeps a pool that Berth made at its share of the group.
func (w Wish) share(p *ThinPool) (s Intent, due bool) {
	g := w.Group
	if !p.managed || !g.managed || w.SizePercent == 0 {
		return s, false
	}
	wanted := min(g.share(w.SizePercent), g.floor(g.total-2*p.metadataSize()))
	if wanted <= p.size {
		return s, false
	}
	next := min(wanted, p.size+room(g, p, w.Extension))
	if next <= p.size {
		return Stands(provision.PoolNoRoom, "thin pool %s has %s and shall have %s, and volume group %s has %s free",
			w.Pool.Name, quantity.Bytes(p.size), quantity.Bytes(wanted), g.Name, quantity.Bytes(g.free(""))), true
	}
	s = Stands(provision.PoolGrown, "thin pool %s was extended from %s to %s, its share of volume group %s",
		w.Pool.Name, quantity.Bytes(p.size), quantity.Bytes(next), g.Name)
	s.Command = func(t Tool, _ []string) run.Command { return t.extendCommand(w.Pool.Name, next) }
	return s, true
}

// Intent says how far a wish is met, and what is to be done next about it.
type Intent struct {
	// Outcome is reported when the intent is carried out, or when nothing is to be done.
	provision.Outcome
	// Target of the device mapper that it needs, if not every kernel has that loaded.
	Target string
	// Disks that are taken for it.
	Disks []string
	// Command carries it out, with the nodes of the disks; nil if nothing is to be done.
	Command func(t Tool, nodes []string) run.Command
}

// Stands is an Intent to do nothing.
func Stands(r provision.Reason, format string, args ...any) Intent {
	return Intent{Outcome: provision.Outcome{Reason: r, Message: fmt.Sprintf(format, args...)}}
}

// The device mapper's names for the targets that not every kernel has loaded: that of thin
// pools, which comes with that of thin volumes, and that of copy-on-write snapshots.
const (
	PoolTarget = "thin-pool"
	CowTarget  = "snapshot"
)
