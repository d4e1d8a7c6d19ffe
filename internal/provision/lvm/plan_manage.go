package lvm

import (
	"fmt"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/quantity"
	"berth.dev/berth/internal/run"
)

// The plans of wishes decide from what is known of a group, nil if there is none.

// planGroup makes a group and lets it grow. A group that others made is used as it is.
func (g *group) planGroup(w provision.PoolWish, now time.Time) step {
	name := w.Pool.Name
	switch {
	case g == nil && len(w.Disks) == 0:
		return stands(provision.PoolAwaitsDisks, "there is no volume group %s, and no empty disk to make it of", name)
	case g == nil:
		s := stands(provision.PoolMade, "volume group %s was made", name)
		s.disks, s.command = w.Disks, func(c Config, nodes []string) run.Command { return c.makeGroupCommand(name, nodes) }
		return s
	case g.trouble(now) != "":
		return stands(provision.PoolTroubled, "volume group %s is not changed: %s", name, g.trouble(now))
	case !g.managed:
		return stands(provision.PoolForeign, "volume group %s was not made by Berth: it is used as it is, and no disk is added to it", name)
	case len(w.Disks) == 0:
		return stands(provision.PoolAsAsked, "volume group %s has %d disks", name, len(g.devices))
	}
	s := stands(provision.PoolGrown, "volume group %s was grown", name)
	s.disks, s.command = w.Disks, func(c Config, nodes []string) run.Command { return c.growGroupCommand(name, nodes) }
	return s
}

// planPool makes a thin pool, extends it when it fills up, and keeps it at its share of a
// group that grows. What is about to fill up comes first.
func (g *group) planPool(w provision.PoolWish, now time.Time) step {
	name, thin := split(w.Pool)
	switch {
	case g == nil:
		return stands(provision.PoolAwaitsDisks, "there is no volume group %s for thin pool %s", name, w.Pool.Name)
	case g.trouble(now) != "":
		return stands(provision.PoolTroubled, "thin pool %s is not changed: %s", w.Pool.Name, g.trouble(now))
	case g.pools[thin] == nil && w.SizePercent == 0:
		return stands(provision.PoolAbsent, "there is no thin pool %s, and none is to be made", w.Pool.Name)
	case g.pools[thin] == nil:
		return g.planMake(w)
	}
	p := g.pools[thin]
	if why := p.unfit(w.Pool.Name); why != "" {
		return stands(provision.PoolTroubled, "thin pool %s is not changed: %s", w.Pool.Name, why)
	}
	for _, plan := range []func(provision.PoolWish, *thinPool) (step, bool){g.planMetadata, g.planData, g.planShare} {
		if s, due := plan(w, p); due {
			return s
		}
	}
	return stands(provision.PoolAsAsked, "thin pool %s has %s", w.Pool.Name, quantity.Bytes(p.size))
}

// planMake makes a thin pool, in a group of Berth's alone: what else is in a group of
// others, or is to be, Berth cannot know.
func (g *group) planMake(w provision.PoolWish) step {
	_, thin := split(w.Pool)
	l := g.layout(w.SizePercent)
	switch taken := g.others[thin] || g.find(thin) != nil || g.wiping[thin] != nil; {
	case taken:
		return stands(provision.PoolForeign, "logical volume %s is no thin pool", w.Pool.Name)
	case !g.managed:
		return stands(provision.PoolForeign, "thin pool %s is not made: volume group %s was not made by Berth", w.Pool.Name, g.name)
	case l.data < g.unit || l.takes() > g.free(""):
		return stands(provision.PoolNoRoom, "thin pool %s needs %s with its metadata, and volume group %s has %s free",
			w.Pool.Name, quantity.Bytes(l.takes()), g.name, quantity.Bytes(g.free("")))
	}
	s := stands(provision.PoolMade, "thin pool %s was made with %s", w.Pool.Name, quantity.Bytes(l.data))
	s.target, s.command = poolTarget, func(c Config, _ []string) run.Command { return c.makePoolCommand(w.Pool.Name, l) }
	return s
}

// planMetadata extends metadata that fills up.
func (g *group) planMetadata(w provision.PoolWish, p *thinPool) (s step, due bool) {
	size := p.metadataSize()
	wanted := g.extended(size, p.kernel.metadata, w.Extension)
	if wanted <= size {
		return s, false
	}
	fill := fmt.Sprintf("the metadata of thin pool %s is filled to %d%%", w.Pool.Name, p.kernel.metadata.of(100))
	// Its spare grows with it.
	more := min(wanted-size, g.floor(g.free("")/2), g.floor(maxMetadata-size))
	if more < g.unit {
		return stands(provision.PoolNoRoom, "%s, and it cannot be extended: volume group %s has %s free", fill, g.name, quantity.Bytes(g.free(""))), true
	}
	s = stands(provision.PoolExtended, "%s, and was extended by %s", fill, quantity.Bytes(more))
	s.command = func(c Config, _ []string) run.Command { return c.extendMetadataCommand(w.Pool.Name, more) }
	return s, true
}

// planData extends data that fills up.
func (g *group) planData(w provision.PoolWish, p *thinPool) (s step, due bool) {
	wanted := g.extended(p.size, p.kernel.data, w.Extension)
	if wanted <= p.size {
		return s, false
	}
	fill := fmt.Sprintf("thin pool %s is filled to %d%%", w.Pool.Name, p.kernel.data.of(100))
	next := min(wanted, p.size+g.room(p, w.Extension))
	if next <= p.size {
		return stands(provision.PoolNoRoom, "%s, and cannot be extended: volume group %s has %s free, which its metadata may need",
			fill, g.name, quantity.Bytes(g.free(""))), true
	}
	s = stands(provision.PoolExtended, "%s, and was extended from %s to %s", fill, quantity.Bytes(p.size), quantity.Bytes(next))
	s.command = func(c Config, _ []string) run.Command { return c.extendDataCommand(w.Pool.Name, next) }
	return s, true
}

// planShare keeps a pool that Berth made at its share of the group.
func (g *group) planShare(w provision.PoolWish, p *thinPool) (s step, due bool) {
	if !p.managed || !g.managed || w.SizePercent == 0 {
		return s, false
	}
	wanted := min(g.share(w.SizePercent), g.floor(g.total-2*p.metadataSize()))
	if wanted <= p.size {
		return s, false
	}
	next := min(wanted, p.size+g.room(p, w.Extension))
	if next <= p.size {
		return stands(provision.PoolNoRoom, "thin pool %s has %s and shall have %s, and volume group %s has %s free",
			w.Pool.Name, quantity.Bytes(p.size), quantity.Bytes(wanted), g.name, quantity.Bytes(g.free(""))), true
	}
	s = stands(provision.PoolGrown, "thin pool %s was extended from %s to %s, its share of volume group %s",
		w.Pool.Name, quantity.Bytes(p.size), quantity.Bytes(next), g.name)
	s.command = func(c Config, _ []string) run.Command { return c.extendDataCommand(w.Pool.Name, next) }
	return s, true
}
