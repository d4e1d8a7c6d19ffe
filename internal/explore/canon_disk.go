package explore

import "berth.dev/berth/internal/ownership"

// sharing writes what the record says of a shared disk. The table of keys is state only where a
// backup may bring an older one back: else it has every key that is in use.
func (c *canon) sharing(v *ownership.Volume) {
	if !v.Kind.Traits().Reserves {
		return
	}
	c.flags(v.Clean)
	if !c.ahead.backups {
		return
	}
	c.n(uint64(len(v.Keys)))
	for _, k := range v.Keys {
		c.reservation(k)
	}
}

// attachment writes node i's link with the disk, and its session's registration.
func (c *canon) attachment(i int) {
	d, n := &c.w.disk, &c.w.nodes[i]
	if d.shares == 0 {
		return
	}
	c.n(uint64(d.links[i]))
	c.reservation(d.keys[i])
	c.epoch(n.late)
	c.flags(n.copy.Flushed == n.copy.Opened, c.w.slots.taken&(1<<i) != 0, c.w.slots.waiting&(1<<i) != 0)
}

// target writes the reservation.
func (c *canon) target() {
	d := &c.w.disk
	if d.shares == 0 {
		return
	}
	c.reservation(d.holder)
	c.flags(d.current, c.w.truth.unclean, c.w.truth.forgot)
	if d.at > 0 {
		c.n(uint64(c.place[d.at-1]))
	} else {
		c.n(0)
	}
	c.span(c.w.now-c.w.truth.usedAt, ownership.ExpireAfter)
}

// nodes writes a set of nodes, a bit each.
func (c *canon) nodes(set uint8) {
	for _, i := range c.order[:c.w.cfg.Nodes] {
		c.flags(set&(1<<i) != 0)
	}
}
