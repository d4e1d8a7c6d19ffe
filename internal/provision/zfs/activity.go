package zfs

import (
	"time"

	"berth.dev/berth/internal/provision/reading"
)

// activity is what goes on in a zpool, whatever is read of it meanwhile.
type activity struct {
	// reading says whether it is to be read again.
	reading reading.Mark
	// asking is set while a question has no answer.
	asking bool
	// running are the changes under way by their ids, and ended how many ended.
	running map[string]running
	ended   int
	// tidying is set while somebody waits to tidy up.
	tidying bool
}

// running is a change under way.
type running struct {
	since time.Time
	// room in a pool that was promised to it and is not yet known to be taken.
	parent string
	room   int64
}

// begin notes a change, and holds the room that its steps take.
func (z *zpool) begin(id string, now time.Time, steps []step) {
	if z == nil {
		return
	}
	r := running{since: now}
	for _, s := range steps {
		if s.takes > 0 {
			r.parent, r.room = s.parent, r.room+s.takes
		}
	}
	if z.running == nil {
		z.running = map[string]running{}
	}
	z.running[id] = r
}

// fulfil gives back the room that was held for a step: what it made counts now.
func (z *zpool) fulfil(id string, s step) {
	if r, ok := z.running[id]; ok {
		r.room -= s.takes
		z.running[id] = r
	}
}

// end notes that a change is not under way any more.
func (z *zpool) end(id string) {
	if z == nil {
		return
	}
	if _, ok := z.running[id]; ok {
		delete(z.running, id)
		z.ended++
	}
}

// held is the room that is promised to changes under way, in one of the zpool's pools or,
// with no name, in all.
func (z *zpool) held(parent string) (room int64) {
	for _, r := range z.running {
		if parent == "" || r.parent == parent {
			room += r.room
		}
	}
	return room
}

// oldest is when the change that is under way longest began; zero if none is.
func (z *zpool) oldest() (since time.Time) {
	for _, r := range z.running {
		if since.IsZero() || r.since.Before(since) {
			since = r.since
		}
	}
	return since
}
