package shell

import (
	"slices"
	"time"
)

const (
	// selfFenced is when the writers of a node have stopped that renews no Lease, as the contract of the guards
	// says, and a second more.
	selfFenced = 31 * time.Second
	// steady is how far two renewals of a node are apart that is there.
	steady = 10 * time.Second
	// waking is how long the guard of a machine that wakes may take to look at its clock. A guard that died while its
	// machine slept, or that began anew since, may have left that to the watchdog.
	waking, unguarded = 2 * time.Second, 12 * time.Second
)

// renews notes a renewal of a guard's Lease. It is called with the API server's lock.
func (o *oracle) renews(node string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := append(o.renewed[node], time.Now())
	o.renewed[node] = all[max(0, len(all)-16):]
}

// sends judges the guard of a node that writes: its Lease was renewed in time, unless most nodes cannot renew
// theirs. The contract is no proof for a shared disk, and replicated copies rely on it. It counts on a clock that
// runs. It is called with the world's lock.
func (o *oracle) sends(k *kernel) {
	m, now := k.m, time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.renewed[m.name]
	if len(all) == 0 {
		return
	}
	last := all[len(all)-1]
	grace := waking
	if g := m.guard.p; g.isDead() || g.began.After(m.woke) {
		grace = unguarded
	}
	if now.Sub(last) < selfFenced || now.Sub(m.woke) < grace || m.stood.After(last) {
		return
	}
	there := 0
	for _, other := range o.w.machines {
		if other != m && o.steadily(other.name, now) {
			there++
		}
	}
	if 2*there > len(o.w.machines) {
		o.fails("a pod on %s writes, and the lease of the node was not renewed for %v, while %d nodes of %d renewed theirs",
			m.name, now.Sub(last).Round(time.Second), there, len(o.w.machines))
	}
}

// steadily says whether a node has renewed its Lease without a gap for as long as the contract takes.
func (o *oracle) steadily(node string, now time.Time) bool {
	since := now
	all := o.renewed[node]
	for _, at := range slices.Backward(all) {
		if since.Sub(at) > steady {
			return false
		}
		if since = at; now.Sub(since) >= selfFenced {
			return true
		}
	}
	return false
}
