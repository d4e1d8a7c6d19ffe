package explore

import (
	"cmp"
	"slices"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// volume writes the record.
func (c *canon) volume(v *ownership.Volume) {
	if v == nil {
		c.n(0)
		return
	}
	c.n(uint64(v.Factor) + 1)
	c.n(uint64(v.Size))
	c.epoch(v.Epoch)
	c.flags(v.Deleting)
	c.primary(v)
	c.point(v.RecoveryPoint)
	c.lineage(v.Lineage)
	c.losses(v.Losses)
	c.node(v.FenceRequest.Executor)
	c.epoch(v.FenceRequest.Epoch)
	c.sharing(v)
	c.writers(v)
	c.point(v.Failover.Approved)
	c.deadline(v.ExpireAt)
	for _, i := range c.order[:c.w.cfg.Nodes] {
		r, ok := v.Replica(names[i])
		if !ok {
			c.n(0)
			continue
		}
		c.n(uint64(r.State) + 1)
		c.point(r.Point)
		if v.Sharing.ManyWriters {
			c.said(v, r.Unstaged)
			c.said(v, r.Fenced)
		}
		// Both are only ever compared with the record's own epoch.
		c.flags(r.Unstaged == v.Epoch, r.Fenced == v.Epoch)
		if v.Kind.Traits().Attaches {
			c.n(uint64(r.Tries))
			c.deadline(r.RetryAt)
		}
	}
}

// primary writes the owner of the epoch, or how the epoch ended. A former owner
// matters only for the controllers' counts about it.
func (c *canon) primary(v *ownership.Volume) {
	p := &v.Primary
	c.n(uint64(p.Phase))
	if !p.Phase.Open() && !c.ahead.time && !c.ahead.backups && !v.Sharing.ManyWriters {
		return
	}
	c.node(p.Node)
	c.boot(p.Node, p.Boot)
}

// boot writes how many boots ago a node had this one.
func (c *canon) boot(node, boot string) {
	i := indexOf(node)
	if i < 0 {
		c.n(0)
		return
	}
	if !c.ahead.backups { // this one or an earlier one; evidence says of which
		c.flags(bootNames[c.w.nodes[i].boot] == boot)
		return
	}
	for ago := uint8(0); ago < c.w.nodes[i].boot; ago++ {
		if bootNames[c.w.nodes[i].boot-ago] == boot {
			c.n(uint64(ago) + 1)
			return
		}
	}
	c.n(0)
}

// losses are read by the repair of a record, which only a backup makes necessary.
func (c *canon) losses(losses []ownership.Loss) {
	if !c.ahead.backups {
		return
	}
	c.n(uint64(len(losses)))
	for _, l := range losses {
		c.epoch(l.Epoch)
		c.point(l.Kept)
		c.point(l.Known)
	}
}

func (c *canon) promise(p *ownership.Promise) {
	c.epoch(p.Epoch)
	c.node(p.Primary)
	c.lineage(p.Lineage)
	if c.ahead.backups { // only a record that is mended is made from these
		c.boot(p.Primary, p.Boot)
		c.losses(p.Losses)
	}
}

func (c *canon) machine(i int) {
	n := &c.w.nodes[i]
	p := &n.copy
	c.flags(p.Exists, p.Dirty, p.Condemned, p.Quarantined, n.up, n.paused, n.agent, n.mounted)
	c.flags(n.tainted, n.stopped, n.woke, n.wanted, n.wrecked > 0, n.served, n.deaf, n.lapsed, n.cordoned)
	c.flags(n.full, n.refused)
	c.n(uint64(p.Size))
	c.attachment(i)
	c.promise(&p.Promise)
	c.ownEpochs(n)
	if p.Condemned || p.Quarantined {
		c.deadline(p.DestroyAt)
	}
	c.n(uint64(len(p.Points)))
	for k := range p.Points {
		c.point(p.Points[k])
		c.content(n.data[k])
	}
	c.content(n.head)
	c.n(uint64(len(n.branches)))
	for _, b := range n.branches {
		c.content(b)
	}
	if c.held(p.Preserved) {
		c.point(p.Preserved)
	} else {
		c.n(0)
	}
	c.holds(p)
	c.evidence(i)
	c.span(n.sinceRenewal, ownership.SelfFenceAfter)
	c.span(n.sinceStored, ownership.SelfFenceAfter)
	c.span(n.sinceKubelet, leaseDuration)
	c.pending(n.pending)
}

// ownEpochs writes the epochs that the node opened and gave up. Without backups a
// number never comes again: then an epoch that is closed and over is like none, and
// closed epochs matter only for the epochs at hand.
func (c *canon) ownEpochs(n *node) {
	p, v := &n.copy, c.w.server.current.volume
	if c.ahead.backups || c.w.cfg.Kind.Traits().Reserves || v == nil {
		c.epoch(p.Opened)
		c.n(p.Closed.Number)
		c.named(p.Opened)
		return
	}
	closed := p.GaveUp(p.Opened)
	over := closed && !p.Dirty && !n.mounted && p.Opened != v.Epoch
	c.flags(over, closed, p.GaveUp(v.Epoch), p.GaveUp(p.Promise.Epoch))
	if !over {
		c.epoch(p.Opened)
		c.named(p.Opened)
	}
}

// named writes the snapshots that were taken in an epoch: an epoch that a node
// still has open must not give one name to two contents.
func (c *canon) named(e lineage.Epoch) {
	t := &c.w.truth
	for k := range t.named {
		if !e.IsZero() && t.named[k].point.Epoch == e {
			c.point(t.named[k].point)
		}
	}
	c.n(0)
}

// held tells whether the snapshot exists anywhere. One that does not cannot become
// the newest of any node again.
func (c *canon) held(p lineage.Point) bool {
	if p.IsZero() {
		return false
	}
	for i := range c.w.cfg.Nodes {
		n := &c.w.nodes[i]
		if n.copy.Has(p) || n.pending != nil && n.pending.action.To == p {
			return true
		}
	}
	for k := range c.w.streams {
		if c.w.streams[k].header.Target == p {
			return true
		}
	}
	return false
}

// holds writes which snapshots are kept, and how long; for which node does not
// matter. A snapshot that can never have enough newer ones above it is not dropped
// in any case.
func (c *canon) holds(p *ownership.Copy) {
	kept := c.kept[:0]
	for _, h := range p.Holds {
		if h.Point.Seq+1+keep > c.ahead.newest || !h.Until.After(c.w.clock()) || !c.held(h.Point) {
			continue
		}
		k := slices.IndexFunc(kept, func(o ownership.Hold) bool { return o.Point == h.Point })
		if k < 0 {
			kept = append(kept, h)
		} else if h.Until.After(kept[k].Until) {
			kept[k] = h
		}
	}
	slices.SortFunc(kept, func(a, b ownership.Hold) int {
		return cmp.Or(cmp.Compare(a.Point.Seq, b.Point.Seq), cmp.Compare(a.Point.Epoch.Number, b.Point.Epoch.Number))
	})
	for _, h := range kept {
		c.point(h.Point)
		if c.ahead.time {
			c.deadline(h.Until)
		}
	}
	c.n(0)
	c.kept = kept
}

// sets writes sets of nodes, in the order of the sets' own names for nodes.
func (c *canon) sets(in uint16) {
	var out uint64
	for set := range 1 << c.w.cfg.Nodes {
		if in&(1<<set) == 0 {
			continue
		}
		renamed := 0
		for k, j := range c.order[:c.w.cfg.Nodes] {
			if set&(1<<j) != 0 {
				renamed |= 1 << k
			}
		}
		out |= 1 << renamed
	}
	c.n(out)
}

// evidence writes the nodes that the node's lease names, and the records about its boots: which one
// had its power cut, and which one renewed the lease. A machine that is off cannot come to own an
// epoch, so only the boot that owns one matters.
func (c *canon) evidence(i int) {
	n := &c.w.nodes[i]
	c.flags(n.deleted)
	for _, j := range c.order[:c.w.cfg.Nodes] {
		c.flags(n.members&(1<<j) != 0)
	}
	if n.sets == 1<<n.members {
		c.n(0)
	} else {
		c.sets(n.sets)
	}
	if c.ahead.backups {
		c.n(uint64(n.boot - n.leased))
		if n.poweroff > 0 {
			c.n(1 + uint64(n.boot-n.poweroff))
		} else {
			c.n(0)
		}
		return
	}
	owns := func(boot uint8) bool {
		v := c.w.server.current.volume.On(names[i])
		return v != nil && v.Primary.Phase.Open() && v.Primary.Node == names[i] && v.Primary.Boot == bootNames[boot]
	}
	c.flags(n.poweroff > 0 && owns(n.poweroff), c.ahead.time && n.leased == n.boot, c.ahead.time && owns(n.leased))
}

// pending writes a decision with the arguments that carrying it out will use.
func (c *canon) pending(p *pending) {
	if p == nil {
		c.n(0)
		return
	}
	a := &p.action
	c.n(uint64(a.Verb) + 1)
	switch a.Verb {
	case ownership.Record:
		c.flags(p.read.rv == c.w.server.current.rv, p.ignored, p.brake, p.ordered && !c.w.cfg.Automatic, a.Reason == ownership.RecordBehind, p.age > maxDataLoss,
			slices.Contains(c.w.truth.issued, a.Next.Epoch), p.unused >= ownership.ExpireAfter)
		if c.w.diskJudge().fences(p) {
			c.span(c.w.now-p.decided, ownership.ExpireAfter)
		}
		c.nodes(p.wanted)
		c.nodes(p.waiting)
		c.nodes(p.leaving)
		c.nodes(p.unseen)
		c.nodes(p.deleted)
		c.volume(a.Next)
	case ownership.Persist, ownership.Open, ownership.Close:
		c.promise(&a.Promise)
		c.reservation(a.Key)
	case ownership.Grow:
		c.n(uint64(a.Size))
	case ownership.Pull:
		c.node(a.From)
		c.point(a.Base)
		c.point(a.To)
	case ownership.RollBack, ownership.Snapshot:
		c.point(a.To)
	case ownership.Drop:
		for _, d := range a.Points {
			c.point(d)
		}
		c.n(0)
	case ownership.Mount:
		c.flags(a.Check && c.w.disk.shares > 0)
	case ownership.Register, ownership.Reserve:
		c.reservation(a.Key)
		c.flags(a.Expect == c.w.disk.holder.Raw(), a.Expect == 0)
		c.n(a.Expect.Number())
		if c.w.cfg.Many {
			c.expected(a.Expect)
		}
	case ownership.Condemn, ownership.Quarantine:
		c.deadline(a.Until)
		c.flags(p.unread)
	case ownership.Destroy:
		c.n(uint64(p.factor))
		for _, j := range c.order[:c.w.cfg.Nodes] {
			c.flags(p.wrecked[j] == c.w.nodes[j].wrecked, p.read.volume == nil)
		}
	}
}
