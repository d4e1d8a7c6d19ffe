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
func (c call) read(ctx context.Context, dev Device) (state, error) {
	for range readings {
		s, err := c.readOnce(ctx, dev)
		if !errors.Is(err, errChanging) {
			return s, err
		}
	}
	return state{}, errChanging
}

// readOnce asks first which key is the session's own, and then for all of them, and for the
// reservation. The two answers must be of one generation.
func (c call) readOnce(ctx context.Context, dev Device) (state, error) {
	before, err := c.keys(ctx, dev)
	if err != nil {
		return state{}, err
	}
	own, err := c.own(ctx, dev, before.Keys)
	if err != nil {
		return state{}, err
	}
	c.proved = &proof{own: own}
	keys := before
	if own != 0 {
		if keys, err = c.keys(ctx, dev); err != nil {
			return state{}, err
		}
	}
	r, err := c.reservation(ctx, dev)
	if err != nil {
		return state{}, err
	}
	s, err := judge(c.kind(), own, keys, r)
	if err != nil {
		return state{}, err
	}
	if s.refused, err = c.refused(ctx, dev, s); err != nil {
		return state{}, err
	}
	if c.proved != nil {
		c.proved.keys, c.proved.reservation, c.proved.refused = keys.Keys, r, s.refused
	}
	return s, nil
}

func (c call) reservation(ctx context.Context, dev Device) (scsi.Reservation, error) {
	b, err := c.execute(ctx, dev, scsi.ReadReservation())
	if err != nil {
		return scsi.Reservation{}, err
	}
	r, err := scsi.ParseReservation(b)
	if err != nil {
		return scsi.Reservation{}, provision.Unavailable(err)
	}
	return r, nil
}

func (c call) keys(ctx context.Context, dev Device) (scsi.Registrations, error) {
	b, err := c.execute(ctx, dev, scsi.ReadKeys())
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
func (c call) own(ctx context.Context, dev Device, keys []uint64) (uint64, error) {
	keys = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(keys))), func(k uint64) bool { return k == 0 })
	if len(keys) == 0 {
		return 0, nil
	}
	if len(keys) > maxAsked {
		return 0, fmt.Errorf("%w: the disk has %d registrations: at most %d are looked at", provision.ErrConflict, len(keys), maxAsked)
	}
	if i := slices.Index(keys, c.key); i > 0 {
		keys[0], keys[i] = keys[i], keys[0]
	}
	can, err := c.capabilities(ctx, dev)
	if err != nil {
		return 0, err
	}
	for _, k := range keys {
		switch err := c.ask(ctx, dev, scsi.Register(k, k, can.CanPersist)); {
		case err == nil:
			c.key = k
			return k, nil
		case !errors.Is(err, provision.ErrConflict):
			return 0, err
		}
	}
	return 0, nil
}

// ask sends what changes nothing, for the sake of the answer.
func (c call) ask(ctx context.Context, dev Device, question scsi.Change) error {
	_, err := c.execute(ctx, dev, question.Command())
	return err
}

// change ends what was proved, also if no answer comes.
func (c call) change(ctx context.Context, dev Device, change scsi.Change) error {
	c.proved = nil
	return c.ask(ctx, dev, change)
}

// capabilities asks what the target can do. One that does not know the question promises nothing. A registration asks
// the target to keep it only if it can: one that cannot refuses that.
func (c call) capabilities(ctx context.Context, dev Device) (scsi.Capabilities, error) {
	b, err := c.execute(ctx, dev, scsi.ReportCapabilities())
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
func (c call) promises(ctx context.Context, dev Device) error {
	can, err := c.capabilities(ctx, dev)
	switch {
	case err != nil:
		return err
	case !can.Offers(writeExclusive):
		return fmt.Errorf("%w: target %s has no reservations of the type Write Exclusive", provision.ErrUnsupported, c.Target)
	case c.disk.ManyWriters && !can.Offers(registrantsOnly):
		return fmt.Errorf("%w: several nodes are to write volume %s, and target %s has no reservations of the type Write Exclusive, Registrants Only: "+
			"use a target that has them, or let one node write", provision.ErrUnsupported, c.disk.Volume, c.Target)
	case c.disk.ManyWriters && !can.CanPersist:
		return fmt.Errorf("%w: several nodes are to write volume %s, and target %s forgets its reservations when it loses power (PTPL_C is 0), so nothing "+
			"proves there that a node was shut out: use a target that keeps them, or let one node write", provision.ErrUnsupported, c.disk.Volume, c.Target)
	case (c.c.Promises.Persistent || c.disk.Persistent) && !can.CanPersist:
		return fmt.Errorf("%w: target %s forgets its reservations when it loses power (PTPL_C is 0), so it fences no node", provision.ErrUnsupported, c.Target)
	}
	return nil
}

func (c call) register(ctx context.Context, dev Device, key uint64) error {
	can, err := c.capabilities(ctx, dev)
	if err != nil {
		return err
	}
	c.key = key
	return c.change(ctx, dev, scsi.RegisterAnyway(key, can.CanPersist))
}

// reserve takes the reservation from exactly the expected key. The target compares: RESERVE takes
// what no session holds, and PREEMPT is refused if no session is registered under the key, as it is after
// another session took the reservation from it. The target is asked for its promises each time: a unit that was
// there before the agent began was never attached by it, and a Volume may have begun to count on persistence.
func (c call) reserve(ctx context.Context, dev Device, expect, key uint64) error {
	if err := c.promises(ctx, dev); err != nil {
		return err
	}
	if c.disk.ManyWriters {
		return c.admit(ctx, dev, expect, key)
	}
	s, err := c.read(ctx, dev)
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
		err = c.preempt(ctx, dev, key, expect)
	} else {
		err = c.change(ctx, dev, scsi.Reserve(key, writeExclusive))
	}
	if err != nil {
		return err
	}
	if s, err = c.read(ctx, dev); err != nil {
		return err
	}
	if !s.holding || s.holder != key {
		return fmt.Errorf("%w: the reservation was taken, and then had the key %#x", provision.ErrConflict, s.holder)
	}
	return nil
}

// preempt takes the reservation from a key and aborts the commands of its sessions. A target that
// does not know that judges each of them when it executes it, as SAM-5 demands.
func (c call) preempt(ctx context.Context, dev Device, own, victim uint64) error {
	err := c.change(ctx, dev, scsi.PreemptAndAbort(own, victim, c.kind()))
	if errors.Is(err, provision.ErrUnsupported) && !c.c.Promises.Abort {
		return c.change(ctx, dev, scsi.Preempt(own, victim, c.kind()))
	}
	return err
}
