package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/naming"
)

// disks is the medium of shared disks. What the node must know of a disk that is not its own is in the
// journal.
type disks struct {
	shared.Disks
	locate func(v *v1alpha1.Volume) (shared.Disk, error)
}

// Attachments is the Medium of shared disks. locate returns the disk of a Volume, from its spec.
func Attachments(d shared.Disks, locate func(v *v1alpha1.Volume) (shared.Disk, error)) Medium {
	return disks{d, locate}
}

func (disks) data() bool { return false }

func (disks) recall(_ context.Context, o *Owner, l *look) (err error) {
	l.kept, _, err = o.c.World.Load(l.id)
	l.facts.Copy, l.disk = l.kept.Copy(), l.kept.Disk
	return err
}

// identify finds out which disk the volume is. Handle and identity say that. What the volume counts on may change.
func (d disks) identify(_ *Owner, l *look, object *v1alpha1.Volume) error {
	disk, err := d.locate(object)
	switch {
	case err != nil:
		return fmt.Errorf("finding the disk of volume %s: %w", l.id, err)
	case l.kept.Disk != shared.Disk{} && (l.kept.Disk.Handle != disk.Handle || l.kept.Disk.Identity != disk.Identity):
		return fmt.Errorf("%w: volume %s was the disk %s (%s) on this node, and its Volume object says %s (%s): it is not used (give the Volume of another disk another name; "+
			"if no Volume of the old disk is left, remove %s.json from plugins/disk.berth.dev/epochs in the kubelet's directory of this node)",
			provision.ErrConflict, l.id, l.kept.Disk.Handle, l.kept.Disk.Identity, disk.Handle, disk.Identity, l.id)
	}
	l.disk = disk
	return nil
}

// survey asks the disk. While a step is under way, or if the disk does not answer, the rules are
// told that an attach is under way: then nothing begins, and no entry ends.
func (d disks) survey(ctx context.Context, o *Owner, l *look) {
	moving := false
	var failed error
	o.hinted(l.id, func(h *hint) { moving, failed = h.moving, h.failed })
	l.trouble = errors.Join(l.trouble, failed)
	if l.disk == (shared.Disk{}) {
		return // nothing was ever attached here
	}
	if l.facts.Absent && !l.facts.Mounted && another(o.c.World, l) {
		return // the attachment is that volume's
	}
	view, err := d.Look(ctx, l.disk)
	switch {
	case moving:
		view = shared.View{Disk: ownership.Disk{Link: ownership.Attaching}}
	case err != nil:
		l.away, l.trouble = true, errors.Join(l.trouble, err)
		view = shared.View{Disk: ownership.Disk{Link: ownership.Attaching}}
	default:
		var fresh bool
		o.hinted(l.id, func(h *hint) { fresh, failed = h.learn(&view) })
		if fresh {
			o.c.Log.Info("an attach or a detach failed", "volume", l.id, "why", view.Problem)
		}
		l.trouble = errors.Join(l.trouble, failed)
	}
	l.view, l.facts.Disk = view, view.Disk
}

// another says whether the node keeps another volume of the same disk: the disk of a volume that was deleted may have
// been given out again, and its journal be here still. What cannot be read counts as one.
func another(w World, l *look) bool {
	ids, err := w.Volumes()
	return err != nil || slices.ContainsFunc(ids, func(id string) bool {
		k, _, err := w.Load(id)
		return id != l.id && (err != nil || naming.Same(k.Disk, l.disk))
	})
}

// learn remembers why a disk is not attached, and returns it: nil if it is, or no attach has failed. A failed
// attach is cleaned up soon, and the kubelet asks later. fresh says that the reason is new.
func (h *hint) learn(v *shared.View) (fresh bool, why error) {
	switch {
	case v.Problem != "":
		fresh = v.Problem != h.problem
		h.problem = v.Problem
	case v.Link == ownership.Attached:
		h.problem = ""
	}
	if h.problem == "" {
		return false, nil
	}
	return fresh, errors.New(h.problem)
}

func (disks) mark(_ context.Context, o *Owner, l *look, m provision.Mark) error {
	return (actor{o}).keep(l, func(k *journal.Kept) error {
		if !m.Promise.Epoch.IsZero() {
			k.Promise = m.Promise
		}
		for _, e := range []struct {
			now *lineage.Epoch
			to  lineage.Epoch
		}{{&k.Opened, m.Opened}, {&k.Closed, m.Closed}} {
			if e.to.IsZero() {
				continue
			}
			if err := journal.Grow(e.now, e.to); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d disks) carryOut(ctx context.Context, o *Owner, l *look, do ownership.Action) (more bool, err error) {
	switch do.Verb {
	case ownership.Register:
		return true, d.Register(ctx, l.disk, do.Key.Raw(), openers(l, do.Key))
	case ownership.Reserve:
		err := d.Reserve(ctx, l.disk, do.Expect, do.Key.Raw())
		if errors.Is(err, provision.ErrConflict) { // another node was faster: ask again
			err = nil
		}
		return true, err
	case ownership.Attach, ownership.Detach:
		return false, d.move(o, l, do.Verb)
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

func (disks) ready(_ context.Context, _ *Owner, l *look) (provision.Content, error) {
	return l.view.Content, nil
}

func (d disks) flushed(ctx context.Context, o *Owner, l *look) error {
	if err := d.Flush(ctx, l.disk); err != nil {
		return err
	}
	return d.accepts(ctx, o, l)
}

// accepts returns nil if the disk still takes this session's writes in the epoch: then it took all
// that were flushed.
func (d disks) accepts(ctx context.Context, o *Owner, l *look) error {
	view, err := d.Look(ctx, l.disk)
	if err != nil {
		return err
	}
	if !takes(&view.Disk, l.disk, ownership.Key{Node: o.c.Node, Epoch: l.kept.Opened}) {
		return fmt.Errorf("%w: the disk does not take writes of epoch %v from this node", provision.ErrUnavailable, l.kept.Opened)
	}
	return nil
}

// stirs says whether the session of a volume in use does not hold the reservation any more. In an epoch that was
// given up it need not, and another node's may for as long as this node stands by.
func (d disks) stirs(ctx context.Context, o *Owner, k *journal.Kept) bool {
	if k.GaveUp(k.Opened) {
		return false
	}
	view, err := shared.Glance(ctx, d.Disks, k.Disk)
	return err == nil && view.Link == ownership.Attached && !takes(&view.Disk, k.Disk, ownership.Key{Node: o.c.Node, Epoch: k.Opened})
}

// takes says whether the disk takes writes under the key from this node's session, and keeps others out.
func takes(d *ownership.Disk, disk shared.Disk, k ownership.Key) bool {
	if d.Link != ownership.Attached || d.Registered != k.Raw() {
		return false
	}
	if disk.ManyWriters {
		return d.Registrants
	}
	return d.Holding && d.Holder == k.Raw()
}

// rests: the record's watch, and Watch, tell of all that changes.
func (disks) rests(ownership.Action) time.Duration { return 0 }

func (disks) answer(context.Context, *Owner, *look, string, *ownership.Volume, *ownership.Peer) error {
	return nil
}

// move begins to attach or detach the disk, in the background and without the lock. One step at a time
// is under way.
func (d disks) move(o *Owner, l *look, verb ownership.Verb) error {
	began := false
	o.hinted(l.id, func(h *hint) {
		began = !h.moving
		h.moving = true
	})
	if !began {
		return nil
	}
	id, disk, leaves := l.id, l.disk, leaves(l)
	o.c.Background(func(ctx context.Context) {
		err := d.moved(ctx, verb, disk, leaves)
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

func (d disks) moved(ctx context.Context, verb ownership.Verb, disk shared.Disk, leaves bool) error {
	switch {
	case verb == ownership.Attach:
		return d.Attach(ctx, disk)
	case leaves:
		if err := d.Register(ctx, disk, 0, shared.Idle); err != nil {
			return err
		}
	}
	return d.Detach(ctx, disk)
}

// leaves says whether this session's registration goes before the disk is detached, and with it the reservation if the
// session holds it. Nothing else ever gives that up. Only a volume that is being deleted does, and only what is its own:
// the disk may be another volume's by now, if the record comes from a backup. To clear the disk would end the
// registrations of others, too, whose they are.
func leaves(l *look) bool {
	return l.facts.Record != nil && l.facts.Record.Deleting && l.view.Link == ownership.Attached && l.facts.Issued(l.view.Registered)
}
