package engine

import (
	"time"

	"berth.dev/berth/internal/provision/reading"
)

// slow is how long a change may run. After that its tools must hang: no command of a
// backend takes longer.
const slow = 2 * time.Minute

// Account holds the engine's own data about one unit. A backend embeds an Account in its own
// type, which holds the facts about the unit. The lock of the Book guards it.
type Account struct {
	// Mark says whether the unit must be read again.
	Mark reading.Mark
	// Read is when the tools last answered for the unit; zero if they never did.
	Read time.Time
	// Silent is why the tools gave no answer the last time; nil if they gave one.
	Silent error

	running map[string]running
	ended   int
}

// running is a change under way.
type running struct {
	since time.Time
	// room in a pool, in bytes, that was promised to the change and is not taken yet.
	pool string
	room int64
}

func (a *Account) account() *Account { return a }

func (a *Account) begin(id string, r running) {
	if a.running == nil {
		a.running = map[string]running{}
	}
	a.running[id] = r
}

func (a *Account) end(id string) {
	if _, ok := a.running[id]; ok {
		delete(a.running, id)
		a.ended++
	}
}

// fulfil gives back the room that was promised for a step: the facts about the unit now count
// that room as taken.
func (a *Account) fulfil(id string, room int64) {
	if r, ok := a.running[id]; ok {
		r.room -= room
		a.running[id] = r
	}
}

// Promised returns the room in bytes that is promised to changes under way in a pool of the
// unit, or in all of its pools if the name is empty.
func (a *Account) Promised(pool string) (room int64) {
	for _, r := range a.running {
		if pool == "" || r.pool == pool {
			room += r.room
		}
	}
	return room
}

// Busy says whether a change is under way.
func (a *Account) Busy() bool { return len(a.running) > 0 }

// Activity returns how many changes ended so far, and how many are under way.
func (a *Account) Activity() (ended, underWay int) { return a.ended, len(a.running) }

// BusySince returns when the oldest change under way began; zero if none is under way.
func (a *Account) BusySince() (since time.Time) {
	for _, r := range a.running {
		if since.IsZero() || r.since.Before(since) {
			since = r.since
		}
	}
	return since
}

// Stuck says whether a change runs for longer than any command takes.
func (a *Account) Stuck(now time.Time) bool {
	since := a.BusySince()
	return !since.IsZero() && now.Sub(since) > slow
}
