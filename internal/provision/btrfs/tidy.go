package btrfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
)

// tidier removes in the background what changes, deletions and tenants left over.
type tidier struct{ *store }

// tidyEach has all filesystems tidied in the background.
func (p tidier) tidyEach(ctx context.Context) {
	for _, fsid := range p.engine.Names() {
		p.tidySoon(ctx, fsid)
	}
}

// tidySoon has a filesystem tidied in the background, if there is something to tidy.
func (p tidier) tidySoon(ctx context.Context, fsid string) {
	begin := false
	p.engine.With(fsid, func(u *facts) {
		begin = u != nil && !u.tidying && !u.failed && u.Silent == nil && u.untidy() && p.namesakes(u.label) == nil
		if begin {
			u.tidying = true
		}
	})
	if !begin {
		return
	}
	ctx = context.WithoutCancel(ctx)
	p.engine.Tasks.Go(func() {
		unlock, err := p.engine.UnitLocks.Lock(ctx, fsid)
		if err != nil {
			return
		}
		defer unlock()
		ended := p.engine.Begin(fsid, "tidying")
		p.refreshOf(ctx, fsid) // a tenant may have made more, until its volume was deleted
		changed, stuck, err := p.tidy(ctx, fsid)
		ended()
		p.refreshOf(ctx, fsid, changed...)
		p.engine.With(fsid, func(u *facts) {
			if u == nil {
				return
			}
			u.tidying, u.failed = false, err != nil || len(stuck) > 0
			for id, why := range stuck {
				if e := u.trash[id]; e != nil {
					e.stuck = why
				}
			}
		})
		p.engine.Changed.Set()
	})
}

// tidy removes the leftovers of changes and deletions, and sets the limits of volumes anew. stuck
// says, by id, why a deleted volume or snapshot could not be removed, and changed are the volumes whose limits
// were set and the copies that lost leftovers. The caller has the lock of the filesystem.
func (p tidier) tidy(ctx context.Context, fsid string) (changed []string, stuck map[string]string, failure error) {
	making, trash := map[string]*entry{}, map[string]*entry{}
	var volumes []*entry
	var over map[string]*entry
	bounds := map[string]int64{}
	p.engine.With(fsid, func(u *facts) {
		if u == nil {
			failure = fmt.Errorf("%w: filesystem %s", provision.ErrPoolMissing, fsid)
			return
		}
		if failure = cmp.Or(p.namesakes(u.label), u.Silent); failure != nil {
			return
		}
		maps.Copy(making, u.making)
		maps.Copy(trash, u.trash)
		over = u.leftovers()
		for id, v := range over {
			bounds[id] = u.tally().limit(v)
		}
		t := u.tally()
		for _, v := range u.unlimited() {
			volumes, bounds[v.ID] = append(volumes, v), t.limit(v)
		}
	})
	if failure != nil {
		return nil, nil, failure
	}
	f, err := p.config.Open(fsid, true)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if len(volumes) > 0 { // quotas may have been turned off and on
		failure = f.Mark()
	}
	for _, v := range volumes {
		failure = errors.Join(failure, f.Limit(v.Subvolume.ID, bounds[v.ID]), gather(f, v))
	}
	for id, e := range over {
		failure = errors.Join(failure, p.sweep(f, id, e, bounds[id]))
	}
	for id, e := range making {
		failure = errors.Join(failure, destroy(f, e), f.Forget(e.root.ID), f.Remove(makingArea+"/"+id))
	}
	return slices.Collect(maps.Keys(bounds)), empty(ctx, f, trash), failure
}

// gather has all subvolumes of a volume count for its limit alone.
func gather(f Filesystem, v *entry) (failure error) {
	for id, others := range v.astray {
		failure = errors.Join(failure, f.Count(id, v.root.ID, true))
		for _, other := range others {
			if other != v.root.ID {
				failure = errors.Join(failure, f.Count(id, other, false))
			}
		}
	}
	return failure
}

// atOnce is how many subvolumes of an entry are removed before others get the lock of the filesystem.
const atOnce = 256

// destroy removes the subvolumes of an entry, and leaves the outer ones to the next time if there are
// many. A subvolume whose limit is reached cannot be changed, not even removed, so the limit goes first,
// and so do those of others that a tenant chose.
func destroy(f Filesystem, e *entry) error {
	if e.root.ID == 0 {
		return nil
	}
	if e.Volume == "" {
		if err := errors.Join(f.Limit(e.root.ID, 0), gather(f, e)); err != nil {
			return err
		}
	}
	all := append(slices.Clone(e.within), e.root)
	for _, root := range all[:min(len(all), atOnce)] {
		if err := f.Destroy(root); err != nil {
			return fmt.Errorf("subvolume %d: %w", root.ID, err)
		}
	}
	return nil
}

// The kernel frees what was destroyed in the background. Berth looks several times whether it is
// done, a moment apart. Later the watch looks again.
const (
	looks  = 5
	moment = 40 * time.Millisecond
)

// empty removes the entries of the trash. The directory of one stays until what it held is free
// again.
func empty(ctx context.Context, f Filesystem, trash map[string]*entry) (stuck map[string]string) {
	stuck = map[string]string{}
	destroyed := false
	for id, e := range trash {
		err := e.sound()
		if err == nil || e.root.ID == 0 {
			err = errors.Join(displace(f, id, e), destroy(f, e))
		}
		if err != nil {
			stuck[id] = fmt.Sprintf("removing it: %v", err)
			delete(trash, id)
		}
		destroyed = destroyed || e.root.ID != 0 || e.held != nil && len(e.held.places) > 0
	}
	if destroyed && f.Commit() != nil {
		return stuck // nothing is certain
	}
	for range looks {
		if err := forget(f, trash, stuck); err != nil || len(trash) == 0 {
			return stuck
		}
		select {
		case <-ctx.Done():
			return stuck
		case <-time.After(moment):
		}
	}
	return stuck
}

// forget removes the entries of the trash that are free, and notes why one cannot be removed.
func forget(f Filesystem, trash map[string]*entry, stuck map[string]string) error {
	roots, err := f.Roots()
	if err != nil {
		return err
	}
	gone := map[string]*entry{}
	for id, e := range trash {
		if _, there := roots[e.Subvolume.ID]; !there {
			gone[id] = e
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if err := f.Commit(); err != nil { // the kernel counts what it has freed with that
		return err
	}
	for id, e := range gone {
		if err := errors.Join(f.Forget(e.Subvolume.ID), f.Remove(trashArea+"/"+id)); err != nil {
			stuck[id] = fmt.Sprintf("removing it: %v", err)
		}
		delete(trash, id)
	}
	return nil
}
