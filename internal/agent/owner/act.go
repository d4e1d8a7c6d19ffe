package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

// actor carries out what the rules have decided, under the volume's lock.
type actor struct{ *Owner }

// carryOut carries out an action other than a mount. more says that another decision is to follow.
func (o actor) carryOut(ctx context.Context, l *look, do ownership.Action, a *asking) (more bool, err error) {
	o.c.Log.V(1).Info("acting on a volume", "volume", l.id, "verb", do.Verb.String(), "reason", do.Message())
	w := o.c.World
	switch do.Verb {
	case ownership.Record:
		return true, o.write(ctx, l, do.Next)
	case ownership.Persist:
		return true, o.keep(l, func(k *journal.Kept) error {
			k.Promise = do.Promise
			return nil
		})
	case ownership.Open:
		return true, o.keep(l, func(k *journal.Kept) error { return journal.Grow(&k.Opened, do.Promise.Epoch) })
	case ownership.Close:
		return true, o.keep(l, func(k *journal.Kept) error { return journal.Grow(&k.Closed, do.Promise.Epoch) })
	case ownership.Register:
		return true, w.Register(ctx, l.disk, do.Key.Raw(), openers(l, do.Key))
	case ownership.Reserve:
		err := w.Reserve(ctx, l.disk, do.Expect, do.Key.Raw())
		if errors.Is(err, provision.ErrConflict) { // another node was faster: ask again
			err = nil
		}
		return true, err
	case ownership.Attach, ownership.Detach:
		return false, o.move(l, do.Verb)
	case ownership.Unmount:
		return true, o.unmount(ctx, l, a)
	}
	return false, fmt.Errorf("%w: the rules ask to %v volume %s, which has no data of its own on this node", provision.ErrUnsupported, do.Verb, l.id)
}

// openers says what may have the device open while the session registers under a key: a mount of that
// very epoch, if there is one.
func openers(l *look, k ownership.Key) shared.Use {
	if l.facts.Mounted && !k.Fence && k.Epoch == l.kept.Opened && k.Epoch == l.kept.Taken.Epoch {
		return shared.OwnMount
	}
	return shared.Idle
}

// keep changes durably what the node keeps.
func (o actor) keep(l *look, change func(k *journal.Kept) error) error {
	k := l.kept
	k.Volume, k.Disk = l.id, l.disk
	if err := change(&k); err != nil {
		return fmt.Errorf("volume %s: %w", l.id, err)
	}
	if err := o.c.World.Store(k); err != nil {
		return err
	}
	l.kept = k
	return nil
}

// use makes the volume writable in the epoch that this node has opened. The guard knows the epoch
// first, and the node keeps that pods may have the volume: a crash after that leaves it to be unmounted.
// Action.Check has no effect here: each mount begins with the check that the filesystem's tool makes.
func (o actor) use(ctx context.Context, l *look, a *asking) error {
	if l.facts.Mounted {
		return a.use(ctx)
	}
	e, content := l.kept.Opened, l.view.Content
	if err := o.c.World.OpenEpoch(ctx, l.id, e, content); err != nil {
		return fmt.Errorf("%w: registering epoch %v of volume %s at the guard of this node: %w", provision.ErrUnavailable, e, l.id, err)
	}
	if err := o.keep(l, func(k *journal.Kept) error {
		k.Taken = journal.Taken{Epoch: e, Boot: o.c.Boot, Block: l.object.Spec.VolumeMode == v1alpha1.Block, Content: content}
		return nil
	}); err != nil {
		return err
	}
	return a.use(ctx)
}

// unmount takes the volume off this node, proves that nothing has it open any more, and keeps whether
// every write has reached the disk.
func (o actor) unmount(ctx context.Context, l *look, a *asking) error {
	if err := o.takeOff(ctx, l, a); err != nil {
		return err
	}
	flushed := o.c.World.Flush(ctx, l.disk)
	if errors.Is(flushed, provision.ErrInUse) { // in another mount namespace, or as a device
		return fmt.Errorf("volume %s is unmounted, and a process still has it: %w", l.id, flushed)
	}
	if flushed == nil {
		flushed = o.accepts(ctx, l)
	}
	if flushed != nil {
		o.c.Log.Info("the last writes to a volume may be lost; its next mount begins with a check", "volume", l.id, "reason", flushed.Error())
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return o.keep(l, func(k *journal.Kept) error {
		k.Taken = journal.Taken{}
		if flushed == nil {
			return journal.Grow(&k.Flushed, k.Opened)
		}
		return nil
	})
}

func (o actor) takeOff(ctx context.Context, l *look, a *asking) error {
	left := func() ([]string, error) { return o.c.World.Mounts(l.kept.Taken.Content) }
	if a.off != nil {
		if err := a.off.Unmount(ctx); err != nil {
			return err
		}
		a.unmounted = true
		left = func() ([]string, error) { return a.off.Left(ctx) }
	} else {
		paths, err := left()
		if err != nil {
			return err
		}
		for _, path := range slices.Backward(paths) {
			if err := o.c.World.Unmount(ctx, path); err != nil {
				return err
			}
		}
	}
	paths, err := left()
	if err != nil {
		return err
	}
	if len(paths) > 0 {
		return inUse(l.id, paths)
	}
	return nil
}

// accepts returns nil if the disk still takes this session's writes in the epoch: then it took all
// that were flushed.
func (o actor) accepts(ctx context.Context, l *look) error {
	view, err := o.c.World.Look(ctx, l.disk)
	if err != nil {
		return err
	}
	key := ownership.Key{Node: o.c.Node, Epoch: l.kept.Opened}.Raw()
	if d := view.Disk; d.Link != ownership.Attached || !d.Holding || d.Holder != key || d.Registered != key {
		return fmt.Errorf("%w: the disk does not take writes of epoch %v from this node", provision.ErrUnavailable, l.kept.Opened)
	}
	return nil
}

// tellGuard closes an epoch at the guard that is given up and unmounted: the guard makes sure that
// nothing holds the volume in any namespace. Only then the rules go on, to the release.
func (o actor) tellGuard(ctx context.Context, l *look) error {
	k := &l.kept
	if l.facts.Mounted || k.Opened.IsZero() || !k.GaveUp(k.Opened) {
		return nil
	}
	told := false
	o.hinted(l.id, func(h *hint) { told = h.told >= k.Opened.Number })
	if told {
		return nil
	}
	if err := o.c.World.CloseEpoch(ctx, l.id, k.Opened); err != nil {
		return fmt.Errorf("%w: closing epoch %v of volume %s at the guard of this node: %w", provision.ErrUnavailable, k.Opened, l.id, err)
	}
	o.hinted(l.id, func(h *hint) { h.told = max(h.told, k.Opened.Number) })
	return nil
}

// move begins to attach or detach the disk, in the background and without the lock. One step at a time
// is under way.
func (o actor) move(l *look, verb ownership.Verb) error {
	last, waits := clears(l)
	if verb == ownership.Detach && waits {
		return nil // the record changes when they are gone
	}
	began := false
	o.hinted(l.id, func(h *hint) {
		began = !h.moving
		h.moving = true
	})
	if !began {
		return nil
	}
	id, disk := l.id, l.disk
	o.c.Background(func(ctx context.Context) {
		err := o.moved(ctx, verb, disk, last)
		o.hinted(id, func(h *hint) { h.moving, h.failed = false, err })
		if err != nil {
			o.c.Log.Error(err, "moving a shared disk failed, trying again", "volume", id, "step", verb.String())
			o.c.Poke(id, movePause)
			return
		}
		o.c.Poke(id, 0)
	})
	return nil
}

func (o actor) moved(ctx context.Context, verb ownership.Verb, disk shared.Disk, last bool) error {
	switch {
	case verb == ownership.Attach:
		return o.c.World.Attach(ctx, disk)
	case last:
		if err := o.c.World.Clear(ctx, disk); err != nil {
			return err
		}
	}
	return o.c.World.Detach(ctx, disk)
}

// remain are the entries of a volume that is being deleted, other than this node's, that are not gone.
func remain(l *look) (nodes []string) {
	for _, r := range l.facts.Record.Replicas {
		if r.Node != l.facts.Me && r.State != ownership.Gone {
			nodes = append(nodes, r.Node)
		}
	}
	return nodes
}

// clears says whether the reservation of a deleted volume goes before this detach, and waits whether the
// detach must wait for that of other nodes. The attachment with the first name is the last that goes:
// with it goes the reservation, which nothing else ever gives up.
func clears(l *look) (clears, waits bool) {
	if v := l.facts.Record; v == nil || !v.Deleting || l.view.Link != ownership.Attached {
		return false, false
	}
	others := remain(l)
	return len(others) == 0, len(others) > 0 && l.facts.Me < slices.Min(others)
}
