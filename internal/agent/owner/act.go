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
)

// actor carries out what the rules have decided, under the volume's lock.
type actor struct{ *Owner }

// carryOut carries out an action other than a mount. more says that another decision is to follow.
func (o actor) carryOut(ctx context.Context, l *look, do ownership.Action, a *asking) (more bool, err error) {
	o.c.Log.V(1).Info("acting on a volume", "volume", l.id, "verb", do.Verb.String(), "reason", do.Message())
	switch do.Verb {
	case ownership.Record:
		return true, o.write(ctx, l, do.Next)
	case ownership.Persist:
		return true, o.c.Medium.mark(ctx, o.Owner, l, provision.Mark{Promise: do.Promise})
	case ownership.Open:
		return true, o.open(ctx, l, do)
	case ownership.Close:
		return true, o.c.Medium.mark(ctx, o.Owner, l, provision.Mark{Closed: do.Promise.Epoch})
	case ownership.Unmount:
		return true, o.unmount(ctx, l, a)
	}
	return o.c.Medium.carryOut(ctx, o.Owner, l, do)
}

// open keeps that the epoch is about to be written, and registers the key if there is one. That happens once: a
// crash in between ends the epoch.
func (o actor) open(ctx context.Context, l *look, do ownership.Action) error {
	if err := o.c.Medium.mark(ctx, o.Owner, l, provision.Mark{Opened: do.Promise.Epoch}); err != nil || do.Key == (ownership.Key{}) {
		return err
	}
	_, err := o.c.Medium.carryOut(ctx, o.Owner, l, ownership.Action{Verb: ownership.Register, Key: do.Key})
	return err
}

// wants notes that a kubelet asks for a volume.
func (o actor) wants(id string) {
	o.hinted(id, func(h *hint) { h.wanted = o.c.World.Now().Add(patience) })
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
// Whether the writer before ended cleanly is kept, too: the mount may begin with a check then.
func (o actor) use(ctx context.Context, l *look, do ownership.Action, a *asking) error {
	if l.facts.Mounted {
		return a.use(ctx)
	}
	content, err := o.c.Medium.ready(ctx, o.Owner, l)
	if err != nil {
		return err
	}
	e := l.facts.Copy.Opened
	reserved := l.facts.Record.Kind.Traits().Reserves
	if err := o.c.World.OpenEpoch(ctx, l.id, e, content, reserved); err != nil {
		return fmt.Errorf("%w: registering epoch %v of volume %s at the guard of this node: %w", provision.ErrUnavailable, e, l.id, err)
	}
	if err := o.keep(l, func(k *journal.Kept) error {
		k.Taken = journal.Taken{Epoch: e, Boot: o.c.Boot, Block: l.object.Spec.VolumeMode == v1alpha1.Block, Content: content, Unclean: do.Check}
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
	flushed := o.c.Medium.flushed(ctx, o.Owner, l)
	if errors.Is(flushed, provision.ErrInUse) { // in another mount namespace, or as a device
		return fmt.Errorf("volume %s is unmounted, and a process still has it: %w", l.id, flushed)
	}
	if flushed != nil {
		o.c.Log.Info("the last writes to a volume may be lost; its next mount begins with a check", "volume", l.id, "reason", flushed.Error())
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return o.keep(l, func(k *journal.Kept) error {
		k.Taken = journal.Taken{}
		if a.off != nil {
			k.Given = nil // the kubelet unstages a volume when it has unpublished all pods
		}
		if flushed == nil {
			return journal.Grow(&k.Flushed, l.facts.Copy.Opened)
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
		paths, _ := left() // what it cannot tell now, it must tell after the unmounts
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

// takeOffDead takes a dead mount off the path of the call. A device that the kernel has removed is mounted
// nowhere by its identity, so the rules ask for no unmount. The guard knows the device by its number, and does
// not agree while the mount is there. Only the mount of an epoch that is given up comes off. One that goes on is
// left to the rules, which close it first.
func (o actor) takeOffDead(ctx context.Context, l *look, a *asking) error {
	k := &l.facts.Copy
	if a.off == nil || a.unmounted || l.facts.Mounted || !l.kept.InUse(o.c.Boot) || !k.GaveUp(k.Opened) {
		return nil
	}
	if err := a.off.Unmount(ctx); err != nil {
		return err
	}
	a.unmounted = true
	return nil
}

// held asks the rules what to do if a pod has the volume although this node gave the epoch up. They have the record
// say so, and then a controller ends that pod. more says that the record was written. Otherwise the cause is returned, and
// the loop tends the volume again. Nothing is written while a kubelet unstages the volume: it has ended the pods, and
// what holds the volume then lets go in a moment.
func (o actor) held(ctx context.Context, l *look, cause error) (more bool, err error) {
	if k := &l.facts.Copy; l.facts.Unstaging || !errors.Is(cause, provision.ErrInUse) || !k.GaveUp(k.Opened) {
		return false, cause
	}
	l.facts.Held = true
	_, do := o.c.Rules.Next(&l.facts)
	if do.Verb != ownership.Record {
		return false, cause
	}
	return true, errors.Join(o.write(ctx, l, do.Next), ctx.Err())
}

// tellGuard closes an epoch at the guard that is given up and unmounted: the guard makes sure that
// nothing holds the volume in any namespace. Only then the rules go on, to the release.
func (o actor) tellGuard(ctx context.Context, l *look) error {
	if k := &l.facts.Copy; l.facts.Mounted || !k.GaveUp(k.Opened) {
		return nil
	}
	return o.closeAtGuard(ctx, l)
}

func (o actor) closeAtGuard(ctx context.Context, l *look) error {
	k := &l.facts.Copy
	told := false // of no epoch, with the number zero, each guard knows that it is closed
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
