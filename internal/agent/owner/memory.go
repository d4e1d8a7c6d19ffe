package owner

import (
	"context"
	"sync"
	"time"

	"berth.dev/berth/internal/lineage"
)

// memory is what the process of an Owner remembers. All of it may be lost.
type memory struct {
	mu    sync.Mutex
	hints map[string]*hint
	// lapses counts how often this node may have been fenced. It begins with one: an earlier
	// agent may have lapsed.
	lapses uint64
	fenced bool
	// ended: no volume is tended any more.
	ended bool
	// running are the ends of the actions that are being carried out.
	running map[*context.CancelCauseFunc]struct{}
}

// hint is what the process remembers of a volume. All of it may be lost.
type hint struct {
	// wanted is until when an epoch is kept for a kubelet that asked for the volume.
	wanted time.Time
	// moving: an attach, a detach or a stream is under way. failed is what the last one said.
	moving bool
	failed error
	// fetching is the point that a stream brings, and end ends that stream.
	fetching lineage.Point
	end      context.CancelCauseFunc
	// fullUntil is until when there is no room for a larger copy.
	fullUntil time.Time
	// interval of snapshots, and when the copy was last found unchanged.
	interval  time.Duration
	unchanged time.Time
	// problem is why the last attach failed, until the disk is attached.
	problem string
	// cleared is the last lapse after which no epoch from before it can go on here.
	cleared uint64
	// told is the number of the newest epoch that the guard knows to be closed.
	told uint64
	// tended is closed at the end of the next upkeep; nil if no call waits for that.
	tended chan struct{}
	// leaves: the record said that the volume is being deleted, when nothing of it was left on this node.
	leaves bool
}

// endTended has the calls go on that wait for an upkeep.
func (h *hint) endTended() {
	if h.tended != nil {
		close(h.tended)
		h.tended = nil
	}
}

// hinted lets f read or change the hint of a volume.
func (m *memory) hinted(id string, f func(h *hint)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.hints[id]
	if !ok {
		h = &hint{}
		m.hints[id] = h
	}
	f(h)
}

// tended is closed at the end of the volume's next upkeep, or of all upkeep; nil if that has ended.
func (m *memory) tended(id string) (tended <-chan struct{}) {
	m.hinted(id, func(h *hint) {
		if h.tended == nil && !m.ended {
			h.tended = make(chan struct{})
		}
		tended = h.tended
	})
	return tended
}

// end has no call wait for an upkeep any more: the agent ends, and lets the calls end that are under way.
func (m *memory) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	for _, h := range m.hints {
		h.endTended()
	}
}

// lapse notes that this node may have been fenced, and drops the actions that are under way.
func (m *memory) lapse() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lapses++
	for cancel := range m.running {
		(*cancel)(errLapsed)
	}
}

// isFenced says whether the guard was fenced when it was asked last.
func (m *memory) isFenced() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fenced
}

// mayContinue says whether epochs of the volume that began earlier may go on here.
func (m *memory) mayContinue(id string) (may bool) {
	m.hinted(id, func(h *hint) { may = h.cleared == m.lapses })
	return may
}

// noteFence notes that the guard is fenced, and says whether that is new.
func (m *memory) noteFence() bool {
	m.mu.Lock()
	known := m.fenced
	m.fenced = true
	m.mu.Unlock()
	if !known {
		m.lapse()
	}
	return !known
}
