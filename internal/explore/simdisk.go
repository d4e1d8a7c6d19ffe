package explore

import (
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// simDisk is a shared disk at its target, with the sessions of the nodes. A node has one session at
// a time. The target knows registrations by session: one of a session that ended is of no use to the
// node's next session. A session of the past needs no place here, because it writes nothing.
type simDisk struct {
	// shares is how many nodes may be attached; zero stands for a world without the disk.
	shares int
	// persistent: reservations outlive the target's loss of power.
	persistent bool
	links      [maxNodes]ownership.Link
	// keys are the registrations of the present sessions.
	keys [maxNodes]ownership.Key
	// holder has the reservation. It belongs to a session of node at-1, and to the present one if
	// current.
	holder  ownership.Key
	at      int
	current bool
	// registrants: the reservation lets all write that are registered.
	registrants bool
	// old are registrations of sessions that ended. Known: a node's next session has those of its last one.
	old   [maxNodes]ownership.Key
	known bool
}

// wiped stands for the epoch of a volume that was on the disk before. The session of the node that wiped it is still
// registered, and may have sent a command that lands late.
var wiped = lineage.Epoch{ID: "wiped"}

func newDisk(cfg *Config) simDisk {
	d := simDisk{shares: cfg.Shares, persistent: cfg.Persistent, known: cfg.Known}
	for i := range cfg.Factor {
		if !cfg.Partial {
			d.links[i] = ownership.Attached
		}
	}
	if cfg.Many && !cfg.Partial {
		d.keys[0] = ownership.Key{Node: names[0], Epoch: wiped}
		d.holder, d.at, d.current, d.registrants = d.keys[0], 1, true, true
	}
	return d
}

// seenBy is what node i can find out.
func (d *simDisk) seenBy(i int) ownership.Disk {
	f := ownership.Disk{Link: d.links[i]}
	if f.Link == ownership.Attached {
		f.Registered, f.Holder, f.Holding, f.Registrants = d.keys[i].Raw(), d.holder.Raw(), d.holds(i), d.registrants
		for j := range d.keys {
			for _, k := range [2]ownership.Key{d.keys[j], d.old[j]} {
				if k != (ownership.Key{}) {
					f.Keys = append(f.Keys, k.Raw())
				}
			}
		}
	}
	return f
}

func (d *simDisk) holds(i int) bool { return d.at == i+1 && d.current && d.holder != ownership.Key{} }

// accepts tells whether a write of node i reaches the disk: a disk without a reservation takes all.
func (d *simDisk) accepts(i int) bool {
	registered := d.registrants && d.keys[i] != ownership.Key{}
	return d.links[i] == ownership.Attached && (d.holder == ownership.Key{} || d.holds(i) || registered)
}

// taken is how many shares the attachments of nodes other than i take.
func (d *simDisk) taken(i int) (n int) {
	for j, l := range d.links {
		if j != i && l != ownership.Detached {
			n++
		}
	}
	return n
}

func (d *simDisk) register(i int, k ownership.Key) {
	if d.links[i] != ownership.Attached {
		return
	}
	if d.holds(i) && d.keys[i] != k {
		d.holder = k // a holder that registers anew keeps the reservation
	}
	d.keys[i] = k
	if d.known {
		d.old[i] = ownership.Key{}
	}
}

// reserve takes the reservation if it is still as the node saw it.
func (d *simDisk) reserve(i int, expect ownership.RawKey, k ownership.Key, blind bool) bool {
	if d.links[i] != ownership.Attached || d.keys[i] != k || !blind && d.holder.Raw() != expect {
		return false
	}
	d.expel(i, d.holder)
	d.holder, d.at, d.current = k, i+1, true
	return true
}

// preempt removes the registrations with a key, and has the disk reserved for all that are registered.
func (d *simDisk) preempt(i int, expect ownership.RawKey, k ownership.Key) bool {
	if d.links[i] != ownership.Attached || d.keys[i] != k {
		return false
	}
	if expect == 0 {
		if (d.holder != ownership.Key{}) {
			return false
		}
		d.holder, d.at, d.current, d.registrants = k, i+1, true, true
		return true
	}
	for j := range d.keys {
		for _, victim := range [2]ownership.Key{d.keys[j], d.old[j]} {
			if victim.Raw() == expect {
				d.expel(i, victim)
				if d.holder == victim {
					d.holder, d.at, d.current, d.registrants = k, i+1, true, true
				}
				return true
			}
		}
	}
	return false
}

// expel removes the registrations with a key, but node i's.
func (d *simDisk) expel(i int, victim ownership.Key) {
	for j := range d.keys {
		if j != i && d.keys[j] == victim {
			d.keys[j] = ownership.Key{}
		}
		if d.old[j] == victim {
			d.old[j] = ownership.Key{}
		}
	}
}

// clear takes the reservation away, and leaves the registrations.
func (d *simDisk) clear() bool {
	held := d.registrants && d.holder != ownership.Key{}
	if held {
		d.free()
	}
	return held
}

func (d *simDisk) free() {
	d.holder, d.at, d.current, d.registrants = ownership.Key{}, 0, false, false
}

// endSession ends node i's session; the node logs in again at once.
func (d *simDisk) endSession(i int) {
	if d.known {
		return
	}
	if (d.keys[i] != ownership.Key{}) {
		d.old[i] = d.keys[i]
	}
	d.keys[i] = ownership.Key{}
	if d.at == i+1 {
		d.current = false
	}
}

func (d *simDisk) detach(i int) {
	d.endSession(i)
	d.links[i] = ownership.Detached
}

// finish ends an attach that is under way.
func (d *simDisk) finish(i int, well bool) {
	d.links[i] = ownership.AttachFailed
	if well && d.taken(i) < d.shares {
		d.links[i] = ownership.Attached
	}
}

// crash ends the node's session. The machine comes back without the device.
func (d *simDisk) crash(i int) {
	if d.links[i] == ownership.Attached {
		d.detach(i)
	}
}

// restart is the target's loss of power: no session survives it.
func (d *simDisk) restart() {
	for i := range d.keys {
		d.endSession(i)
	}
	if !d.persistent {
		d.keys, d.old = [maxNodes]ownership.Key{}, [maxNodes]ownership.Key{}
		d.free()
	}
}

// slots are the places for disks on the nodes, one on each. Another volume's primary may take or
// want a node's. A bit for each node.
type slots struct{ taken, waiting uint8 }

// press lets the primary of another volume ask for the slot of node i.
func (s *slots) press(i int, free bool) bool {
	switch bit := uint8(1) << i; {
	case (s.taken|s.waiting)&bit != 0:
		return false
	case free:
		s.taken |= bit
	default:
		s.waiting |= bit
	}
	return true
}

// freed gives the slot of node i to the primary that waits for it.
func (s *slots) freed(i int) {
	s.taken |= s.waiting & (1 << i)
	s.waiting &^= 1 << i
}

func (s *slots) relieve(i int) bool {
	held := (s.taken|s.waiting)&(1<<i) != 0
	s.taken &^= 1 << i
	s.waiting &^= 1 << i
	return held
}
