package keep

import (
	"context"
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/ownership"
)

// peer is the guard of another node, and what a controller knows of it.
type peer struct {
	// cut: it has no API server. mute: it does not answer this node, or slow only after a while.
	cut, mute    bool
	slow         time.Duration
	heard, tried time.Duration
	// steady is since when it has said in each renewal that it had an answer to one.
	steady time.Duration
}

// renewPeers lets the peers renew whose time has come.
func (w *world) renewPeers(now time.Duration) {
	for i := range w.peers {
		p := &w.peers[i]
		if now-p.tried < guard.RenewIdle+tick {
			continue
		}
		p.tried = now
		if p.cut || w.down {
			continue
		}
		if now-p.heard+guard.RenewOpen >= ownership.AwayAfter { // as package sight counts
			p.steady = now
		}
		p.heard = now
	}
}

// proves tells whether controllers have the proof that nothing on this node writes.
func (w *world) proves(now time.Duration) bool {
	l := ownership.Leases{
		Watchdog: w.said, Lapsed: now - w.sent, Nodes: len(w.nodes),
		Named: ownership.MembersOf("n0", w.named), Counted: ownership.MembersOf("n0", w.nodes),
	}
	for i := range w.peers {
		if p := &w.peers[i]; slices.Contains(w.nodes, fmt.Sprint("n", i+1)) &&
			p.heard-max(p.steady, w.sent) >= ownership.SelfFenceAfter+ownership.SelfFenceMargin {
			l.Steady++
		}
	}
	_, proves := ownership.ContractProves(&l)
	return proves
}

// Contacts is the peers' side of the guard's question.
func (w *world) Contacts(ctx context.Context, nodes []string) (out []ownership.PeerContact) {
	type answer struct {
		ownership.PeerContact
		after time.Duration
	}
	var answers []answer
	w.mu.Lock()
	for i := range w.peers {
		p, name := &w.peers[i], fmt.Sprint("n", i+1)
		if !p.mute && slices.Contains(nodes, name) {
			answers = append(answers, answer{ownership.PeerContact{Node: name, SinceRenewal: w.clock() - p.heard}, p.slow})
		}
	}
	w.asked++
	w.askedAt = w.clock()
	w.mu.Unlock()
	slices.SortFunc(answers, func(a, b answer) int { return int(a.after - b.after) })
	begun := time.Now()
	for _, a := range answers {
		select {
		case <-ctx.Done():
			return out
		case <-time.After(a.after - time.Since(begun)):
			out = append(out, a.PeerContact)
		}
	}
	return out
}
