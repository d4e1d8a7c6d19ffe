package owner_test

import (
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

var theDiskContent = provision.Content{Source: "/dev/simdisk/lun1", Identity: theDisk.Identity}

// oracle judges with code of its own: it knows neither the rules nor their helpers.
type oracle struct {
	violation string
	// active are the epochs that the record once called Active, with their node; lost those of
	// which a write did not reach the disk.
	active map[string]string
	lost   map[lineage.Epoch]bool
	// buffered are the machines with pages that wait, and the epoch of those.
	buffered map[*machine]lineage.Epoch

	mounts, refused, takeovers, fences, released int
}

func newOracle() oracle {
	return oracle{active: map[string]string{}, lost: map[lineage.Epoch]bool{}, buffered: map[*machine]lineage.Epoch{}}
}

func (o *oracle) fail(format string, args ...any) {
	if o.violation == "" {
		o.violation = fmt.Sprintf(format, args...)
	}
}

// judgeRecord notes what a record says, and judges a release.
func (o *oracle) judgeRecord(who string, old, v *v1alpha1.Ownership) {
	switch v.Primary.Phase {
	case v1alpha1.PrimaryActive:
		if node, known := o.active[v.Epoch.ID]; known && node != v.Primary.Node {
			o.fail("epoch %s is %s's and %s's", v.Epoch.ID, node, v.Primary.Node)
		}
		o.active[v.Epoch.ID] = v.Primary.Node
	case v1alpha1.PrimaryPreparing:
		if v.Epoch != old.Epoch {
			o.takeovers++
		}
	case v1alpha1.PrimaryFenced:
		if old.Primary.Phase != v.Primary.Phase {
			o.fences++
		}
	case v1alpha1.PrimaryReleased:
		e := lineage.Epoch{Number: uint64(v.Epoch.Number), ID: v.Epoch.ID}
		if old.Primary.Phase == v.Primary.Phase {
			return
		}
		o.released++
		if v.Clean && !old.Clean && o.lost[e] {
			o.fail("%s releases epoch %v as clean, and a write of it did not reach the disk", who, e)
		}
	}
}

// judgeMount judges a mount at the moment when it happens.
func (o *oracle) judgeMount(m *machine, e lineage.Epoch) {
	o.mounts++
	k := m.durable()
	switch {
	case k.Opened != e || k.Promise.Epoch != e:
		o.fail("%s mounts in epoch %v, and keeps durably that it opened %v and promised %v", m.name, e, k.Opened, k.Promise.Epoch)
	case e.Number <= k.Closed.Number:
		o.fail("%s mounts in epoch %v, and has given up %v", m.name, e, k.Closed)
	case m.guarded != e:
		o.fail("%s mounts in epoch %v, and its guard knows of %v", m.name, e, m.guarded)
	case o.active[e.ID] != m.name:
		o.fail("%s mounts in epoch %v, and no record ever called that Active for it", m.name, e)
	case k.Taken.Epoch != e || k.Taken.Boot != m.bootID():
		o.fail("%s mounts in epoch %v, and keeps that pods may have %+v", m.name, e, k.Taken)
	}
}

// judgeKept judges what a node keeps: an epoch that it gave up stays given up.
func (o *oracle) judgeKept(m *machine, k journal.Kept) {
	if k.Closed.Number < m.closed {
		o.fail("%s keeps that it gave up epoch %v, and it had given up epoch %d", m.name, k.Closed, m.closed)
	}
	if k.Closed.Number > m.closed && k.Closed == m.epoch && m.served && m.wanted && !m.giving && !m.fenced && m.device != nil {
		m.c.judgeGivesUp(m)
	}
	m.closed = k.Closed.Number
}

// judgeGivesUp judges a node that gives up the epoch in which a pod has the volume. Sleeping nodes, and
// an API server from a backup, are judged elsewhere.
func (c *cluster) judgeGivesUp(m *machine) {
	v, holder := c.current().Status.Ownership, ownership.Disk{}
	if view, err := m.kernel.Look(c.ctx, theDisk); err == nil {
		holder = view.Disk
	}
	mine := ownership.Key{Node: m.name, Epoch: m.epoch}.Raw()
	if c.restored == 0 && v.Epoch.ID == m.epoch.ID && v.Primary.Phase == v1alpha1.PrimaryActive && v.Primary.Node == m.name && holder.Holder == mine {
		c.fail("%s gives up epoch %v, which is its own, and which no other node has shut out", m.name, m.epoch)
	}
}

// judgeReserve judges a reservation that was taken. Bits 32 to 61 of a key are the number of its epoch.
func (o *oracle) judgeReserve(m *machine, from, key ownership.RawKey) {
	number := func(k ownership.RawKey) uint64 { return uint64(k) >> 32 & (1<<30 - 1) }
	fence := func(k ownership.RawKey) bool { return k>>62&1 == 1 }
	if number(from) > number(key) || number(from) == number(key) && fence(from) && !fence(key) {
		o.fail("%s takes the reservation for epoch %d from one that shut it out, of epoch %d", m.name, number(key), number(from))
	}
}

// judgeDetach judges a detach: since the node read the record, the record has said that the attachment
// is to go, or has failed, or there has been no record.
func (c *cluster) judgeDetach(m *machine) {
	if c.gone {
		return
	}
	for _, v := range c.versions[max(1, c.s.now.readAt)-1:] {
		counts := false
		for _, r := range v.Status.Ownership.Replicas {
			counts = counts || r.Node == m.name && r.State != v1alpha1.OwnedRemoving && r.State != v1alpha1.OwnedGone && r.State != v1alpha1.OwnedFailed
		}
		if !counts {
			return
		}
	}
	c.fail("the disk is detached from %s, and the record counts that attachment", m.name)
}

// judgeGiven judges an unmount that was answered with success.
func (o *oracle) judgeGiven(m *machine, sameAPI bool) {
	if m.device != nil {
		o.fail("%s has unstaged the volume, and it is mounted", m.name)
	}
	p := m.c.current().Status.Ownership.Primary
	if sameAPI && p.Node == m.name && (p.Phase == v1alpha1.PrimaryActive || p.Phase == v1alpha1.PrimaryPreparing) {
		o.fail("%s has unstaged the volume, and the record says that it owns it", m.name)
	}
}

// judgeWrite notes a write that the disk refused.
func (o *oracle) judgeWrite(e lineage.Epoch, err error) {
	if err != nil {
		o.refused++
		o.lost[e] = true
	}
}

// losesPages notes the pages of a machine that are gone.
func (o *oracle) losesPages(m *machine) {
	if e, ok := o.buffered[m]; ok {
		o.lost[e] = true
		delete(o.buffered, m)
	}
}

// judgeLog judges what the disk executed: once a later epoch has written, no earlier one does.
func (c *cluster) judgeLog() {
	log, err := c.target.Log()
	if err != nil {
		c.fail("the disk's log: %v", err)
	}
	seen := map[lineage.Epoch]string{}
	var last lineage.Epoch
	for i, w := range log {
		node, known := seen[w.Epoch]
		switch {
		case known && node != w.Node:
			c.fail("write %d: epoch %v is written by %s and %s", i, w.Epoch, node, w.Node)
		case known && w.Epoch != last:
			c.fail("write %d: epoch %v writes again after epoch %v", i, w.Epoch, last)
		case !known && w.Epoch.Number <= last.Number:
			c.fail("write %d: epoch %v follows epoch %v", i, w.Epoch, last)
		}
		seen[w.Epoch], last = w.Node, w.Epoch
	}
}
