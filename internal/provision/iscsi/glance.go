package iscsi

import (
	"context"
	"slices"
	"time"

	"berth.dev/berth/internal/provision/iscsi/scsi"
)

// proof is that a session is registered under a key, and what the target said then. Asking whether a key is the
// session's own changes nothing at the target, which may write all its registrations down anew for that (LIO empties
// a file and fills it). So a disk that is only watched is not asked each second, as long as nothing has changed
// that changes with a registration:
//
//   - a registration goes by a pre-emption, or when all are cleared: then the list of keys is another one. For its key to
//     be in the list again, a session of this node must have registered it, because no other node has the key;
//   - the session registers anew: that is a change of this package's own, which ends the proof before it is sent;
//   - the target lost its power, or the unit was made anew: then the session's connection is another one, or the
//     list of keys;
//   - the session logged in anew, as it does by itself after its path was away: then its connection is another one.
//     Name of the session, generation, keys and holder are the same, and a target that tells sessions apart by
//     more than their identifiers (tgt) has a stranger under it. The target also reports that once, but perhaps to
//     a write of the mount and not to a command of this package.
//
// The generation does not count. A registration that changes nothing raises it, too, so nodes that write one disk would
// each end the other's proof for ever. Only that the two answers are of one generation counts.
//
// The kernel names a connection by its port. It could use one again, so a proof does not last for ever.
type proof struct {
	session, connection string
	at                  time.Time
	own                 uint64
	keys                []uint64
	reservation         scsi.Reservation
	// refused: see state.
	refused bool
}

const proofLasts = time.Minute

// of says whether a proof is about the session as it is now, as far as the kernel knows.
func (p *proof) of(s *Session) bool {
	return p.own != 0 && s.Connection != "" && p.connection == s.Connection && p.session == s.Name && time.Since(p.at) < proofLasts
}

func (p *proof) unchanged(keys scsi.Registrations, r scsi.Reservation) bool {
	before := p.reservation
	before.Generation = keys.Generation
	return slices.Equal(p.keys, keys.Keys) && before == r
}

// study reads the state, and remembers what that has proved of the session, which was looked up before.
func (n nexus) study(ctx context.Context, s *Session) (state, error) {
	found, err := n.read(ctx)
	switch {
	case err != nil:
		n.proved = nil
	case n.proved != nil:
		n.proved.session, n.proved.connection, n.proved.at = s.Name, s.Connection, time.Now()
	}
	return found, err
}

// trust is study if nothing is proved, or something has changed.
func (n nexus) trust(ctx context.Context, s *Session) (state, error) {
	p := n.proved
	if p == nil || !p.of(s) {
		return n.study(ctx, s)
	}
	keys, err := n.keys(ctx)
	if err != nil {
		return state{}, err
	}
	r, err := n.reservation(ctx)
	if err != nil {
		return state{}, err
	}
	if n.proved != p || !p.unchanged(keys, r) { // the target reported a condition meanwhile
		return n.study(ctx, s)
	}
	found, err := judge(n.kind(), p.own, keys, r)
	found.refused = p.refused
	return found, err
}
