package iscsi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi/scsi"
)

// readings is how often the reservations are read anew because they change meanwhile.
const readings = 4

var errChanging = fmt.Errorf("%w: the disk's registrations change while they are read", provision.ErrUnavailable)

// read reads the registrations and the reservation.
func (n nexus) read(ctx context.Context) (state, error) {
	for range readings {
		s, err := n.readOnce(ctx)
		if !errors.Is(err, errChanging) {
			return s, err
		}
	}
	return state{}, errChanging
}

// readOnce asks first which key is the session's own, and then for all of them, and for the
// reservation. The two answers must be of one generation.
func (n nexus) readOnce(ctx context.Context) (state, error) {
	before, err := n.keys(ctx)
	if err != nil {
		return state{}, err
	}
	own, err := n.own(ctx, before.Keys)
	if err != nil {
		return state{}, err
	}
	n.proved = &proof{own: own}
	keys := before
	if own != 0 {
		if keys, err = n.keys(ctx); err != nil {
			return state{}, err
		}
	}
	r, err := n.reservation(ctx)
	if err != nil {
		return state{}, err
	}
	s, err := judge(n.kind(), own, keys, r)
	if err != nil {
		return state{}, err
	}
	if s.refused, err = n.refused(ctx, s); err != nil {
		return state{}, err
	}
	if n.proved != nil {
		n.proved.keys, n.proved.reservation, n.proved.refused = keys.Keys, r, s.refused
	}
	return s, nil
}

func (n nexus) reservation(ctx context.Context) (scsi.Reservation, error) {
	b, err := n.execute(ctx, scsi.ReadReservation())
	if err != nil {
		return scsi.Reservation{}, err
	}
	r, err := scsi.ParseReservation(b)
	if err != nil {
		return scsi.Reservation{}, provision.Unavailable(err)
	}
	return r, nil
}

func (n nexus) keys(ctx context.Context) (scsi.Registrations, error) {
	b, err := n.execute(ctx, scsi.ReadKeys())
	if err != nil {
		return scsi.Registrations{}, err
	}
	r, err := scsi.ParseKeys(b)
	if err != nil {
		return scsi.Registrations{}, provision.Unavailable(err)
	}
	return r, nil
}

// maxAsked is among how many keys the session's own is looked for.
const maxAsked = 64

// own asks the target which of the keys is this session's: a session may register its key under
// itself, which changes nothing, and to any other session the target refuses that.
func (n nexus) own(ctx context.Context, keys []uint64) (uint64, error) {
	keys = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(keys))), func(k uint64) bool { return k == 0 })
	if len(keys) == 0 {
		return 0, nil
	}
	if len(keys) > maxAsked {
		return 0, fmt.Errorf("%w: the disk has %d registrations: at most %d are looked at", provision.ErrConflict, len(keys), maxAsked)
	}
	if i := slices.Index(keys, n.key); i > 0 {
		keys[0], keys[i] = keys[i], keys[0]
	}
	can, err := n.capabilities(ctx)
	if err != nil {
		return 0, err
	}
	for _, k := range keys {
		switch err := n.ask(ctx, scsi.Register(k, k, can.CanPersist)); {
		case err == nil:
			n.key = k
			return k, nil
		case !errors.Is(err, provision.ErrConflict):
			return 0, err
		}
	}
	return 0, nil
}

// ask sends what changes nothing, for the sake of the answer.
func (n nexus) ask(ctx context.Context, question scsi.Change) error {
	_, err := n.execute(ctx, question.Command())
	return err
}

// change ends what was proved, also if no answer comes.
func (n nexus) change(ctx context.Context, change scsi.Change) error {
	n.proved = nil
	return n.ask(ctx, change)
}

// capabilities asks what the target can do. One that does not know the question promises nothing. A registration asks
// the target to keep it only if it can: one that cannot refuses that.
func (n nexus) capabilities(ctx context.Context) (scsi.Capabilities, error) {
	b, err := n.execute(ctx, scsi.ReportCapabilities())
	if errors.Is(err, provision.ErrUnsupported) {
		return scsi.Capabilities{}, nil
	}
	if err != nil {
		return scsi.Capabilities{}, err
	}
	can, err := scsi.ParseCapabilities(b)
	if err != nil {
		return scsi.Capabilities{}, provision.Unavailable(err)
	}
	return can, nil
}

// promises refuses a target that does not keep what the volume, or the node, counts on.
func (n nexus) promises(ctx context.Context) error {
	can, err := n.capabilities(ctx)
	switch {
	case err != nil:
		return err
	case !can.Offers(writeExclusive):
		return fmt.Errorf("%w: target %s has no reservations of the type Write Exclusive", provision.ErrUnsupported, n.Target)
	case n.disk.ManyWriters && !can.Offers(registrantsOnly):
		return fmt.Errorf("%w: several nodes are to write volume %s, and target %s has no reservations of the type Write Exclusive, Registrants Only: "+
			"use a target that has them, or let one node write", provision.ErrUnsupported, n.disk.Volume, n.Target)
	case n.disk.ManyWriters && !can.CanPersist:
		return fmt.Errorf("%w: several nodes are to write volume %s, and target %s forgets its reservations when it loses power (PTPL_C is 0), so nothing "+
			"proves there that a node was shut out: use a target that keeps them, or let one node write", provision.ErrUnsupported, n.disk.Volume, n.Target)
	case (n.c.Promises.Persistent || n.disk.Persistent) && !can.CanPersist:
		return fmt.Errorf("%w: target %s forgets its reservations when it loses power (PTPL_C is 0), so it fences no node", provision.ErrUnsupported, n.Target)
	}
	return nil
}

func (n nexus) register(ctx context.Context, key uint64) error {
	can, err := n.capabilities(ctx)
	if err != nil {
		return err
	}
	n.key = key
	return n.change(ctx, scsi.RegisterAnyway(key, can.CanPersist))
}

// reserve takes the reservation from exactly the expected key. The target compares: RESERVE takes
// what no session holds, and PREEMPT is refused if no session is registered under the key, as it is after
// another session took the reservation from it. The target is asked for its promises each time: a unit that was
// there before the agent began was never attached by it, and a Volume may have begun to count on persistence.
func (n nexus) reserve(ctx context.Context, expect, key uint64) error {
	if err := n.promises(ctx); err != nil {
		return err
	}
	if n.disk.ManyWriters {
		return n.admit(ctx, expect, key)
	}
	s, err := n.read(ctx)
	switch {
	case err != nil:
		return err
	case key == 0 || s.own != key:
		return fmt.Errorf("%w: the session is registered under key %#x, not %#x", provision.ErrConflict, s.own, key)
	case s.holding:
		return nil
	case s.holder != expect:
		return fmt.Errorf("%w: the reservation has the key %#x, not %#x", provision.ErrConflict, s.holder, expect)
	}
	if s.reserved {
		err = n.preempt(ctx, key, expect)
	} else {
		err = n.change(ctx, scsi.Reserve(key, writeExclusive))
	}
	if err != nil {
		return err
	}
	if s, err = n.read(ctx); err != nil {
		return err
	}
	if !s.holding || s.holder != key {
		return fmt.Errorf("%w: the reservation was taken, and then had the key %#x", provision.ErrConflict, s.holder)
	}
	return nil
}

// preempt takes the reservation from a key and aborts the commands of its sessions. A target that
// does not know that judges each of them when it executes it, as SAM-5 demands.
func (n nexus) preempt(ctx context.Context, own, victim uint64) error {
	err := n.change(ctx, scsi.PreemptAndAbort(own, victim, n.kind()))
	if errors.Is(err, provision.ErrUnsupported) && !n.c.Promises.Abort {
		return n.change(ctx, scsi.Preempt(own, victim, n.kind()))
	}
	return err
}
