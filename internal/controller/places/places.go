// Package places feeds what caches know to internal/decide/attach, which decides where the attachments of
// shared disks go, and answers the oversight from it. A question reads nothing from the API server.
//
// Two controllers, or two questions at once, may give the last slot of a node to two volumes. The slots are a
// bound that Berth sets itself: then one attachment too many is there, standbys of the node make way before
// the next one comes, and where the node itself cannot attach so many, the attach fails and is tried again.
package places

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/oversight"
	"berth.dev/berth/internal/decide/attach"
	"berth.dev/berth/internal/driver"
)

// fresh is how long the Lease of a guard may have been seen without a renewal, on this process's clock. It is
// longer than for a suspicion: a standby that was placed on a node that has just failed is soon replaced.
const fresh = 40 * time.Second

// Places answers where attachments go.
type Places struct {
	driver driver.Driver
	clock  clock.PassiveClock

	mu    sync.Mutex
	board *attach.Board
	// guards are the renewals of guards by node.
	guards map[string]renewal
	// synced tell whether the handlers have seen all objects.
	synced []func() bool
}

// renewal is what a Lease said, and when this process first saw it.
type renewal struct{ said, at time.Time }

var _ oversight.Places = (*Places)(nil)

// New makes Places that know nothing. Listen connects them with a cache.
func New(d driver.Driver, c clock.PassiveClock) *Places {
	return &Places{driver: d, clock: c, board: attach.New(), guards: map[string]renewal{}}
}

// Places answers about nodes for a volume that was read a moment ago. Before all objects were seen no node is
// a place.
func (p *Places) Places(v *v1alpha1.Volume, nodes []string) map[string]oversight.Place {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, synced := range p.synced {
		if !synced() {
			return nil
		}
	}
	p.observeVolume(v)
	now := p.clock.Now()
	for _, name := range nodes {
		seen := p.guards[name].at // the zero time is long ago
		p.board.SetNode(name, func(n *attach.Node) { n.Guarded = now.Sub(seen) < fresh })
	}
	answers := make(map[string]oversight.Place, len(nodes))
	for name, place := range p.board.Places(v.Name, nodes) {
		answers[name] = oversight.Place{
			Fits: place.Fits(), Slots: place.Slots, GiveWay: place.GiveWay, MakesRoom: place.MakesRoom, Leaving: place.Leaving, Rank: place.Rank,
		}
	}
	return answers
}

// ready tells whether a Node says that it is.
func ready(n *corev1.Node) bool {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			return n.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}
