package btrfs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/provision/reading"
)

// readings are what is read of one filesystem at once.
type readings struct {
	Filesystem
	roots map[uint64]kernel.Root
	// in are the subvolumes named kernel.Data in a directory of the topmost one, by its inode, and
	// within those in a subvolume.
	in     map[uint64]kernel.Root
	within map[uint64][]kernel.Root
	// quotas of volumes, and the volumes that subvolumes count for, by the ids of subvolumes.
	quotas  map[uint64]kernel.Quota
	counted map[uint64][]uint64
	// known are entries whose records are not read again, by their areas.
	known map[string]map[string]*entry
}

// simpleQuotas is the kernel's word for them.
const simpleQuotas = "squota"

// read reads all facts about a filesystem. What is recorded of the entries that are known it takes from there.
func read(f Filesystem, fsid string, known map[string]map[string]*entry) (*facts, error) {
	u := &facts{fsid: fsid, others: map[string]bool{}}
	r := readings{Filesystem: f, known: known, in: map[uint64]kernel.Root{}, within: map[uint64][]kernel.Root{}}
	var err error
	if u.space, err = f.Space(fsid); err != nil {
		return nil, err
	}
	if r.roots, err = f.Roots(); err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(r.roots)) {
		root := r.roots[id]
		r.within[root.Parent] = append(r.within[root.Parent], root)
		if root.Parent == topLevel && root.Name == kernel.Data {
			r.in[root.Directory] = root
		}
	}
	if u.total, u.trouble = capacity(u.space); u.trouble == "" && crowded(u.space) {
		u.trouble = "its metadata takes nearly all room that is left: add a disk, or delete data (btrfs filesystem usage says more)"
	}
	switch u.space.Quotas {
	case simpleQuotas:
		if r.quotas, err = kernel.Quotas(fsid); err != nil {
			return nil, err
		}
		if r.counted, err = f.Counted(); err != nil {
			return nil, err
		}
	case "":
		u.trouble = cmp.Or(u.trouble, "it has no quotas: turn simple ones on (btrfs quota enable --simple), with Linux 6.7 or later")
	default:
		u.trouble = cmp.Or(u.trouble, "it has full quotas, which tenants evade: use simple ones (btrfs quota disable, then btrfs quota enable --simple), with Linux 6.7 or later")
	}
	for area, into := range map[string]*map[string]*entry{
		volumesArea: &u.volumes, snapshotsArea: &u.snapshots, trashArea: &u.trash, makingArea: &u.making,
	} {
		if *into, err = r.entries(area, u.others); err != nil {
			return nil, fmt.Errorf("reading %s: %w", area, err)
		}
	}
	return u, nil
}

// entries reads an area. What has no record of its own is Berth's only where Berth alone works.
func (r readings) entries(area string, others map[string]bool) (map[string]*entry, error) {
	names, err := r.Names(area)
	if err != nil {
		return nil, err
	}
	entries := map[string]*entry{}
	for _, name := range names {
		if e := r.known[area][name]; e != nil {
			entries[name] = r.again(e)
			continue
		}
		text, inode, err := r.Read(area + "/" + name)
		if err != nil {
			return nil, err
		}
		e := &entry{}
		kept := false
		if e.record, kept = parse(text, name); !kept && (area == volumesArea || area == snapshotsArea) {
			others[name] = true
			continue
		}
		r.complete(e, inode)
		if area == volumesArea || area == trashArea {
			if e.held, err = r.readHeld(area + "/" + name); err != nil {
				return nil, err
			}
		}
		entries[name] = e
	}
	return entries, nil
}

// again returns an entry whose record is known, with its subvolume, and what that takes, as they are now: the
// room of the pool follows from what all of them take together.
func (r readings) again(known *entry) *entry {
	e := *known
	r.complete(&e, known.inode)
	if known.held != nil {
		h := *known.held
		h.places = make(map[uint64]*entry, len(known.held.places))
		for number, place := range known.held.places {
			h.places[number] = r.again(place)
		}
		e.held = &h
	}
	return &e
}

// complete finds the subvolume in the directory of an entry, and what it takes.
func (r readings) complete(e *entry, inode uint64) {
	e.inode, e.root, e.within, e.astray = inode, r.in[inode], nil, nil
	q := r.quotas[e.Subvolume.ID]
	e.taken, e.bound = q.Taken, q.Limit
	if e.root.ID == 0 {
		return
	}
	e.within, e.astray = r.inside(e.root.ID), map[uint64][]uint64{}
	for _, root := range append([]kernel.Root{e.root}, e.within...) {
		if counts := r.counted[root.ID]; e.Volume == "" && (len(counts) != 1 || counts[0] != e.root.ID) {
			e.astray[root.ID] = counts
		}
	}
}

// topLevel is the id of the subvolume that holds all others.
const topLevel = 5

// inside returns the subvolumes in another, the innermost first.
func (r readings) inside(id uint64) (all []kernel.Root) {
	outer := []uint64{id}
	for len(outer) > 0 {
		last := outer[len(outer)-1]
		outer = outer[:len(outer)-1]
		for _, root := range r.within[last] {
			all, outer = append(all, root), append(outer, root.ID)
		}
	}
	slices.Reverse(all)
	return all
}

// refresh reads one filesystem and puts the result into the Book. The caller holds its lock. A
// filesystem that did not answer in time is not asked again until it answers.
func (p *store) refresh(ctx context.Context, fsid string) {
	var asked reading.Moment
	p.engine.With(fsid, func(u *facts) {
		if u != nil {
			asked = p.begin(u)
		}
	})
	p.ask(ctx, fsid, asked, nil)
}

// refreshOf is refresh for a caller that has changed nothing but the volumes of some ids, and what is in no
// area of volumes and snapshots. It does not read the records of the others, which would take as long as
// there are volumes, unless others may have changed them.
func (p *store) refreshOf(ctx context.Context, fsid string, ids ...string) {
	var asked reading.Moment
	var known map[string]map[string]*entry
	p.engine.With(fsid, func(u *facts) {
		if u == nil {
			return
		}
		if !u.Mark.Due() {
			known = u.readBefore(ids)
		}
		p.engine.Touch(u)
		asked = p.begin(u)
	})
	p.ask(ctx, fsid, asked, known)
}

// begin notes that a filesystem is being asked, and when it began; 0 if it must not be asked now. The caller
// has the lock of the Book.
func (p *store) begin(u *facts) (asked reading.Moment) {
	if u.missing || u.asking {
		return 0
	}
	u.asking = true
	return p.engine.Moment()
}

// ask reads a filesystem, and puts the result into the Book.
func (p *store) ask(ctx context.Context, fsid string, asked reading.Moment, known map[string]map[string]*entry) {
	if asked == 0 {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readTimeout, engine.ErrNoAnswer)
	defer cancel()
	answered := make(chan struct{})
	left := false // behind, by a caller that waits no longer; the lock of the Book guards it
	go func() {   // ends when the kernel answers; there is no way to stop it
		defer close(answered)
		var now *facts
		f, err := p.config.Open(fsid, false)
		if err == nil {
			now, err = read(f, fsid, known)
			f.Close()
		}
		p.engine.With(fsid, func(u *facts) {
			if u == nil {
				return
			}
			u.asking = false
			if u.Silent = err; err != nil {
				p.engine.Touch(u)
				return
			}
			now.label, now.missing, now.tidying, now.Account = u.label, u.missing, u.tidying, u.Account
			now.Read = p.config.Now()
			now.Mark.Read(asked)
			p.engine.Put(fsid, now)
			if left { // changes went on meanwhile, and the answer may be older
				p.engine.Touch(now)
			}
		})
	}()
	select {
	case <-answered:
	case <-ctx.Done():
		p.engine.With(fsid, func(u *facts) {
			if u != nil && u.asking {
				u.Silent, left = context.Cause(ctx), true
			}
		})
	}
}
