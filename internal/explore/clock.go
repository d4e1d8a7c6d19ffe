package explore

import (
	"time"

	"berth.dev/berth/internal/ownership"
)

const (
	snapshotInterval = time.Minute
	leaseDuration    = 10 * time.Second
)

// ticks are the steps in which time passes: a heartbeat, more than the rebuild
// delay, more than the quarantine, less than the life of an unused attachment.
var ticks = [...]time.Duration{5 * time.Second, 11 * time.Minute, 25 * time.Hour, 2 * time.Minute}

// tick lets time pass for all processes. Nodes that reach the API renew their
// leases; the others must ask themselves whether to stop.
func (w *World) tick(d time.Duration) {
	for i := 0; i < w.cfg.Nodes; i++ {
		w.agents().selfFence(i) // look before renewing: too late is too late
	}
	w.diskJudge().noteUse()
	w.now += d
	for k := range w.streams {
		w.wire().holdFor(&w.streams[k])
	}
	for i := 0; i < w.cfg.Nodes; i++ {
		n := &w.nodes[i]
		n.sinceSnapshot += d
		n.refused = false // it tries again
		before := n.sinceRenewal
		n.sinceStored, n.sinceRenewal, n.sinceKubelet = n.sinceStored+d, n.sinceRenewal+d, n.sinceKubelet+d
		if n.up && !n.paused && w.linked(i, api) {
			n.sinceKubelet = 0
			if !n.agent {
				continue
			}
			n.sinceStored, n.leased, n.members = 0, n.boot, w.agents().members(i)
			if n.silent = n.sinceRenewal; !n.deaf { // it renewed all the time
				n.sinceRenewal, n.silent, n.sets = 0, before, 0
			}
			if !n.deaf || !w.rules.Conduct.CountsAsHeard {
				n.sets |= 1 << n.members
			}
		}
	}
	for c := range w.ctl {
		w.overseers().observe(c, d)
	}
	for i := 0; i < w.cfg.Nodes; i++ {
		w.agents().selfFence(i)
	}
}

// members are node self and those that have a Node object, a bit each.
func (w agents) members(self int) (all uint8) {
	for i := range w.cfg.Nodes {
		if i == self || !w.nodes[i].deleted {
			all |= 1 << i
		}
	}
	return all
}

// observe lets a controller look at the leases. One that cannot reach the API has
// seen nothing and starts counting anew.
func (w overseers) observe(c int, d time.Duration) {
	ctl := &w.ctl[c]
	if !w.linked(maxNodes+c, api) {
		ctl.lapsed, ctl.steady, ctl.lostFor, ctl.suspect = [maxNodes]time.Duration{}, [maxNodes]time.Duration{}, [maxNodes]time.Duration{}, 0
		ctl.watching = 0
		return
	}
	ctl.watching += d
	for i := 0; i < w.cfg.Nodes; i++ {
		ctl.lapsed[i] += d
		ctl.steady[i] += d
		if w.nodes[i].sinceStored == 0 {
			ctl.lapsed[i] = 0
		}
		if ctl.lapsed[i] > 0 || w.nodes[i].silent >= ownership.SelfFenceAfter && !w.rules.Conduct.StoredIsHeard {
			ctl.steady[i] = 0
		}
		if w.lost(c, i) {
			ctl.lostFor[i] += d
		} else {
			ctl.lostFor[i] = 0
		}
	}
	ctl.suspect = 0
	if v := w.server.current.volume; v != nil {
		if p := indexOf(v.Primary.Node); p >= 0 {
			ctl.suspect = ctl.lostFor[p]
		}
	}
}

// restartController ends a controller's process, and with it all that it has seen.
func (w overseers) restartController(c int) bool {
	w.ctl[c] = controller{}
	return true
}

// selfFence is the node's side of the contract. A running agent stops its
// writers itself; if it is dead, the watchdog resets the machine. A machine that
// is paused does neither until it wakes.
func (w agents) selfFence(i int) {
	n := &w.nodes[i]
	if !n.paused {
		n.woke = false
	}
	writes := n.mounted || n.pending != nil || !n.copy.GaveUp(n.copy.Opened)
	if !n.up || n.paused || n.sinceRenewal < ownership.SelfFenceAfter {
		return
	}
	if !n.agent {
		n.lapsed = true
		if w.cfg.Watchdog && writes {
			w.tellEvent("the watchdog resets %s", names[i])
			w.faults().crash(i)
		}
		return
	}
	c := ownership.Contact{SinceRenewal: n.sinceRenewal}
	for set := range sets {
		if n.sets&(1<<set) != 0 {
			c.Sets = append(c.Sets, sets[set].nodes)
		}
	}
	for j := 0; j < w.cfg.Nodes; j++ {
		if j != i && w.answers(i, j) {
			c.Peers = append(c.Peers, ownership.PeerContact{Node: names[j], SinceRenewal: w.nodes[j].sinceRenewal})
		}
	}
	stop, why := w.rules.MustStop(&c)
	n.lapsed = n.lapsed || stop && !w.rules.Conduct.ForgetsLapses
	if stop && writes {
		w.tellEvent("%s stops its writers: %s", names[i], why.Message())
		if !n.copy.GaveUp(n.copy.Opened) {
			n.copy.Closed = n.copy.Opened
		}
		n.pending = nil
		if n.mounted {
			w.unmount(i)
		}
	}
}
