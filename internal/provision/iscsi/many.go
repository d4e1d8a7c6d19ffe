package iscsi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi/scsi"
)

// A disk that several nodes write has a reservation for all sessions that are registered. The session that holds it
// is one of them. It goes to the one that takes the holder's registration away, and is never given up.
//
// LIO counts a node as registered, and not its session: from the node's last registration on, until any of the node is
// removed. So it refuses a session of which an earlier one's registration was removed after its own was made, unless
// that session holds the reservation. Each look asks for that. Such a session counts as one that is not registered:
// the node gives its epoch up, and its next registration ends this one first.

// view is the state as the rules see it.
func (s *state) view() ownership.Disk {
	d := ownership.Disk{
		Link: ownership.Attached, Registered: ownership.RawKey(s.own),
		Holder: ownership.RawKey(s.holder), Holding: s.holding, Registrants: s.registrants,
	}
	if s.refused {
		d.Registered = 0
	}
	for _, k := range slices.Compact(slices.Sorted(slices.Values(s.keys))) {
		d.Keys = append(d.Keys, ownership.RawKey(k))
	}
	return d
}

// refused asks whether the target refuses the session although it is registered. It is asked to release a
// reservation, which only tells that to a session that does not hold it. The type is another one than the
// reservation's, so that nothing is released.
func (n nexus) refused(ctx context.Context, s state) (bool, error) {
	if !n.disk.ManyWriters || !s.registrants || s.holding || s.own == 0 {
		return false, nil
	}
	err := n.ask(ctx, scsi.Release(s.own, writeExclusive))
	switch {
	case errors.Is(err, provision.ErrConflict):
		return true, nil
	case errors.Is(err, provision.ErrUnsupported): // an invalid release: it holds the reservation
		return false, nil
	}
	return false, err
}

// enter registers the session, which writes then. A target that refuses it nevertheless forgets it first. Nothing on the
// node has the disk open meanwhile, and the session does not hold the reservation, which would go with it.
func (n nexus) enter(ctx context.Context, key uint64) error {
	if err := n.register(ctx, key); err != nil || key == 0 {
		return err
	}
	s, err := n.read(ctx)
	if err != nil || s.own != key || !s.refused || s.holder == key {
		return err
	}
	if err := n.register(ctx, 0); err != nil {
		return err
	}
	return n.register(ctx, key)
}

// admit is reserve for a disk that several nodes write. A disk without a reservation is reserved before a
// registration is taken away: otherwise that would shut no session out.
func (n nexus) admit(ctx context.Context, expect, key uint64) error {
	s, err := n.read(ctx)
	if err != nil {
		return err
	}
	if done, err := s.admits(expect, key); done || err != nil {
		return err
	}
	if !s.reserved {
		err = n.change(ctx, scsi.Reserve(key, registrantsOnly))
	}
	if err == nil && expect != 0 {
		err = n.preempt(ctx, key, expect)
	}
	return n.admitted(ctx, expect, key, err)
}

// admits says whether admit has something to do, and may do it.
func (s *state) admits(expect, key uint64) (done bool, err error) {
	switch {
	case key == 0 || s.own != key:
		return false, fmt.Errorf("%w: the session is registered under key %#x, not %#x", provision.ErrConflict, s.own, key)
	case s.refused:
		return false, errUncounted(key)
	case s.holding && (expect == 0 || expect == key):
		return true, nil
	case s.reserved && expect == 0:
		return false, fmt.Errorf("%w: the disk is reserved under key %#x", provision.ErrConflict, s.holder)
	case expect == key && s.holder != key: // PREEMPT of a key that holds nothing spares no session
		return false, fmt.Errorf("%w: the session would end its own registration under key %#x", provision.ErrConflict, key)
	case expect != 0 && !slices.Contains(s.keys, expect):
		return false, fmt.Errorf("%w: no session is registered under key %#x", provision.ErrConflict, expect)
	}
	return false, nil
}

// admitted reads what a change has done. One whose answer is lost, or that was sent twice, has no other answer: the
// second time a target knows no such key any more.
func (n nexus) admitted(ctx context.Context, expect, key uint64, changed error) error {
	if errors.Is(changed, provision.ErrUnsupported) {
		return changed
	}
	s, err := n.read(ctx)
	gone := expect != 0 && expect != key && !slices.Contains(s.keys, expect)
	switch {
	case err != nil && changed != nil:
		return changed
	case err != nil:
		return err
	case s.own == key && !s.refused && s.registrants && (gone || s.holding):
		return nil
	case changed != nil:
		return changed
	case s.own != key:
		return fmt.Errorf("%w: the session was shut out meanwhile: it is registered under key %#x, not %#x", provision.ErrConflict, s.own, key)
	case s.refused:
		return errUncounted(key)
	}
	return fmt.Errorf("%w: the disk is reserved under key %#x, and not for all that are registered; the registrations under key %#x are gone: %v",
		provision.ErrConflict, s.holder, expect, gone)
}

func errUncounted(key uint64) error {
	return fmt.Errorf("%w: the session is registered under key %#x, and the target refuses it, because it has removed a registration of an earlier session",
		provision.ErrConflict, key)
}
