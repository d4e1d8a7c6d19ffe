package explore

import (
	"slices"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

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
	if c.w.cfg.Many || c.ahead.backups { // else the record has newer numbers than they have
		c.reservation(d.old[i])
	}
	c.epoch(n.late)
	c.flags(n.copy.Flushed == n.copy.Opened, c.w.slots.taken&(1<<i) != 0, c.w.slots.waiting&(1<<i) != 0,
		c.w.diskJudge().ended(n.copy.Opened), c.w.diskJudge().ended(n.late))
}

// target writes the reservation.
func (c *canon) target() {
	d := &c.w.disk
	if d.shares == 0 {
		return
	}
	c.reservation(d.holder)
	c.flags(d.current, d.registrants, c.w.truth.unclean, c.w.truth.forgot, c.w.truth.cleared, c.w.truth.begun)
	if d.at > 0 {
		c.n(uint64(c.place[d.at-1]))
	} else {
		c.n(0)
	}
	c.span(c.w.now-c.w.truth.usedAt, ownership.ExpireAfter)
}

// writers writes what the record says of those that write beside the primary.
func (c *canon) writers(v *ownership.Volume) {
	if !v.Sharing.ManyWriters {
		return
	}
	for _, i := range c.order[:c.w.cfg.Nodes] {
		at := slices.IndexFunc(v.Writers, func(o ownership.Writer) bool { return o.Primary.Node == names[i] })
		if at < 0 {
			c.n(0)
			continue
		}
		o := &v.Writers[at]
		c.n(uint64(o.Primary.Phase) + 1)
		c.boot(o.Primary.Node, o.Primary.Boot)
		c.epoch(o.Epoch)
		c.node(o.FenceRequest.Executor)
		c.epoch(o.FenceRequest.Epoch)
	}
}

// said writes an epoch of which an entry says that it is over. It is only ever compared with those of writers.
func (c *canon) said(v *ownership.Volume, e lineage.Epoch) {
	if !slices.ContainsFunc(v.AllWriters(), func(o ownership.Writer) bool { return o.Epoch == e }) {
		e = lineage.Epoch{}
	}
	c.epoch(e)
}

// expected writes the key whose registrations shall go.
func (c *canon) expected(raw ownership.RawKey) {
	for _, e := range append(slices.Clip(c.w.truth.issued), wiped) {
		for _, i := range c.order[:c.w.cfg.Nodes] {
			for _, fence := range [2]bool{false, true} {
				if k := (ownership.Key{Node: names[i], Epoch: e, Fence: fence}); k.Raw() == raw {
					c.reservation(k)
					return
				}
			}
		}
	}
	c.n(0)
}

// nodes writes a set of nodes, a bit each.
func (c *canon) nodes(set uint8) {
	for _, i := range c.order[:c.w.cfg.Nodes] {
		c.flags(set&(1<<i) != 0)
	}
}
