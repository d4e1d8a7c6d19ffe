package shell

import (
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"berth.dev/berth/api/v1alpha1"
)

const (
	// selfFenced is when the writers of a node have stopped that renews no Lease, as the contract of the guards
	// says, and a second more.
	selfFenced = 31 * time.Second
	// steady is how far two renewals of a node are apart that is there, and deaf for how long one had no answer that may
	// tell others so.
	steady, deaf = 10 * time.Second, 14 * time.Second
	// waking is how long the guard of a machine that wakes may take to look at its clock, and to look again at a volume
	// that nothing held then, for which a pod was just about to begin. A guard that died while its machine slept, or that
	// began anew since, may have left that to the watchdog.
	waking, unguarded = 4 * time.Second, 12 * time.Second
)

// renewal is one of a guard's Lease: when it was stored, and for how long the guard had had no answer to one then.
type renewal struct {
	at     time.Time
	silent time.Duration
}

// renews notes a renewal. It is called with the API server's lock.
func (o *oracle) renews(node string, l *coordinationv1.Lease) {
	silent, err := time.ParseDuration(l.Annotations[v1alpha1.SilentAnnotation])
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.fails("the guard of %s does not say for how long it had no answer: %v", node, err)
	}
	all := append(o.renewed[node], renewal{time.Now(), silent})
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
	last := all[len(all)-1].at
	if now.Sub(last) < selfFenced || m.lags(last, now) {
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

// lags says whether the guard of a machine may not have stopped its writers, though its contract is over: the machine
// sleeps, or has just woken, or its clock stood still since the last renewal. It is called with the world's lock.
func (m *machine) lags(last, now time.Time) bool {
	grace := waking
	if g := m.guard.p; g.isDead() || g.began.After(m.woke) {
		grace = unguarded
	}
	return m.resume != nil || now.Sub(m.woke) < grace || m.stood.After(last)
}

// steadily says whether a node has renewed its Lease without a gap for as long as the contract takes, and had answers.
// One that has none takes the API server for away, as the node that writes does.
func (o *oracle) steadily(node string, now time.Time) bool {
	since := now
	all := o.renewed[node]
	for _, r := range slices.Backward(all) {
		if since.Sub(r.at) > steady || r.silent >= deaf {
			return false
		}
		if since = r.at; now.Sub(since) >= selfFenced {
			return true
		}
	}
	return false
}
