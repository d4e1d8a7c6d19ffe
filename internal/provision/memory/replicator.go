package memory

import (
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/replica"
)

// The effects of a Replicator. Each is disturbed by itself.
const (
	// Record writes the record of a copy.
	Record Operation = "Record"
	// Place keeps data in a place, Fill writes one frame of a stream into a place, and Sweep removes
	// a place that no record names.
	Place Operation = "Place"
	Fill  Operation = "Fill"
	Sweep Operation = "Sweep"
	// Head replaces the content of a volume.
	Head Operation = "Head"
	// Adopt records the filesystem that a stream brought.
	Adopt Operation = "Adopt"
)

// held is what Disks keep of a copy.
type held struct {
	record []byte
	places map[uint64]string
}

// Replicator keeps copies of the volumes of a Provisioner.
type Replicator struct {
	p   *Provisioner
	now func() time.Time

	mu sync.Mutex
	// receiving are the volumes that a stream is received into, and sending the points that streams
	// read, with how many.
	receiving map[string]bool
	sending   map[string]map[lineage.Point]int
}

var (
	_ provision.Replicator  = (*Replicator)(nil)
	_ provision.Replicating = (*Provisioner)(nil)
)

// Replicator implements provision.Replicating.
func (p *Provisioner) Replicator() provision.Replicator { return p.replicator }

// NewReplicator returns another Replicator of a provisioner, with a clock of its own, by which holds
// end. A provisioner is used with one of its Replicators only.
func NewReplicator(p *Provisioner, now func() time.Time) *Replicator {
	return &Replicator{p: p, now: now, receiving: map[string]bool{}, sending: map[string]map[lineage.Point]int{}}
}

// Abilities implements provision.Replicator.
func (r *Replicator) Abilities() provision.Abilities {
	return provision.Abilities{Format: format, Incremental: true, Resumable: true, Checksummed: true}
}

// facts are what is known of a copy when a change begins.
type facts struct {
	replica.Record
	volume provision.Volume
	dirty  bool
	there  []uint64
	part   string // of the stream that was received half
}

func (r *Replicator) facts(id string) (f facts, err error) {
	d := r.p.disks
	d.mu.Lock()
	defer d.mu.Unlock()
	v, pool := d.pools.find(id)
	if pool == nil {
		return f, fmt.Errorf("%w: %s", provision.ErrNotFound, id)
	}
	h := d.held(id)
	if f.Record, err = replica.Decode(h.record); err != nil {
		return f, err
	}
	f.volume, f.there = v, slices.Sorted(maps.Keys(h.places))
	if tip, ok := f.Tip(); ok {
		f.dirty = pool.contents[id] != h.places[tip.Place]
	} else {
		f.dirty = f.Unpointed(v)
	}
	if f.Receiving != nil {
		f.part = h.places[f.Receiving.Place]
	}
	return f, nil
}

// held returns what is kept of a copy. The caller holds mu.
func (d *Disks) held(id string) *held {
	if d.copies[id] == nil {
		d.copies[id] = &held{places: map[uint64]string{}}
	}
	return d.copies[id]
}

// effect is one effect on what is kept of a copy.
func (r *Replicator) effect(ctx context.Context, op Operation, id string, do func(d *Disks, pool *pool, h *held)) error {
	_, err := disturbed(ctx, r.p, op, id, func() (none struct{}, err error) {
		d := r.p.disks
		d.mu.Lock()
		defer d.mu.Unlock()
		_, pool := d.pools.find(id)
		if pool == nil {
			return none, fmt.Errorf("%w: %s", provision.ErrNotFound, id)
		}
		do(d, pool, d.held(id))
		d.notify()
		return none, nil
	})
	return err
}

// put writes a record. From then on what it does not name is left over, and is removed.
func (r *Replicator) put(ctx context.Context, id string, f facts, n replica.Record) error {
	text, err := n.Encode()
	if err != nil || !n.Exists {
		return err
	}
	if !reflect.DeepEqual(n, f.Record) {
		if err := r.effect(ctx, Record, id, func(_ *Disks, p *pool, h *held) {
			h.record = text
			v := p.volumes[id]
			v.Problem = n.Problem()
			p.volumes[id] = v
		}); err != nil {
			return err
		}
	}
	for _, place := range f.there {
		if n.Leftover(place) {
			if err := r.effect(ctx, Sweep, id, func(_ *Disks, _ *pool, h *held) { delete(h.places, place) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// alter makes one change of a record.
func (r *Replicator) alter(ctx context.Context, op Operation, id string, change func(f facts) (replica.Record, error)) error {
	if err := provision.CheckID(id); err != nil {
		return err
	}
	_, err := r.p.change(ctx, op, id, func() (provision.Volume, error) {
		f, err := r.facts(id)
		if err != nil {
			return keep, err
		}
		n, err := change(f)
		if err != nil {
			return keep, err
		}
		return keep, r.put(ctx, id, f, n)
	})
	return err
}

// State implements provision.Replicator.
func (r *Replicator) State(ctx context.Context, id string) (s provision.Replica, err error) {
	if err := provision.CheckID(id); err != nil {
		return s, err
	}
	return disturbed(ctx, r.p, Get, id, func() (provision.Replica, error) {
		f, err := r.facts(id)
		if err != nil {
			return s, err
		}
		token := ""
		if f.Receiving != nil {
			token = strconv.Itoa(len(f.part))
		}
		return f.View(f.volume, f.dirty, token), nil
	})
}

// Mark implements provision.Replicator.
func (r *Replicator) Mark(ctx context.Context, id string, m provision.Mark) error {
	return r.alter(ctx, "Mark", id, func(f facts) (replica.Record, error) { return f.Mark(m, r.now()) })
}

// Snapshot implements provision.Replicator.
func (r *Replicator) Snapshot(ctx context.Context, q provision.PointRequest) error {
	if err := q.Check(); err != nil {
		return err
	}
	return r.alter(ctx, Snapshot, q.Volume, func(f facts) (replica.Record, error) {
		place := f.Free(f.there)
		n, met, err := f.Record.Snapshot(q, place, r.now())
		if met || err != nil {
			return n, err
		}
		return n, r.effect(ctx, Place, q.Volume, func(_ *Disks, p *pool, h *held) { h.places[place] = p.contents[q.Volume] })
	})
}

// Abort implements provision.Replicator.
func (r *Replicator) Abort(ctx context.Context, id string) error {
	if !r.begin(id) {
		return fmt.Errorf("%w: a stream of volume %s is being received", provision.ErrInUse, id)
	}
	defer r.end(id)
	return r.alter(ctx, "Abort", id, func(f facts) (replica.Record, error) { return f.Record.Abort(r.now()), nil })
}

// RollBack implements provision.Replicator.
func (r *Replicator) RollBack(ctx context.Context, id string, to lineage.Point) error {
	return r.alter(ctx, "RollBack", id, func(f facts) (replica.Record, error) { return f.RollBack(to, f.dirty, r.now()) })
}

// Preserve implements provision.Replicator.
func (r *Replicator) Preserve(ctx context.Context, id string, common lineage.Point) error {
	return r.alter(ctx, "Preserve", id, func(f facts) (replica.Record, error) { return f.Preserve(common, f.dirty, r.now()) })
}

// Forget implements provision.Replicator.
func (r *Replicator) Forget(ctx context.Context, id string, tip lineage.Point) error {
	return r.alter(ctx, "Forget", id, func(f facts) (replica.Record, error) { return f.Forget(tip, r.now()), nil })
}

// Drop implements provision.Replicator.
func (r *Replicator) Drop(ctx context.Context, id string, points []lineage.Point) error {
	return r.alter(ctx, "Drop", id, func(f facts) (replica.Record, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return f.Drop(points, slices.Collect(maps.Keys(r.sending[id])), r.now())
	})
}

// Hold implements provision.Replicator.
func (r *Replicator) Hold(ctx context.Context, id string, h ownership.Hold) error {
	return r.alter(ctx, "Hold", id, func(f facts) (replica.Record, error) { return f.Hold(h, r.now()) })
}

// Release implements provision.Replicator.
func (r *Replicator) Release(ctx context.Context, id, owner string, p lineage.Point) error {
	return r.alter(ctx, "Release", id, func(f facts) (replica.Record, error) { return f.Release(owner, p, r.now(), true), nil })
}

// Writable implements provision.Replicator.
func (r *Replicator) Writable(ctx context.Context, id string) (provision.Volume, error) {
	err := r.alter(ctx, "Writable", id, func(f facts) (replica.Record, error) {
		n, made, err := f.Record.Head(r.now())
		if err != nil || !made {
			return n, err
		}
		tip, _ := f.Tip()
		return n, r.effect(ctx, Head, id, func(_ *Disks, p *pool, h *held) { p.contents[id] = h.places[tip.Place] })
	})
	if err != nil {
		return provision.Volume{}, err
	}
	return r.p.Get(ctx, id)
}

// Send implements provision.Replicator.
func (r *Replicator) Send(ctx context.Context, q provision.SendRequest, pipe *os.File) error {
	if err := provision.CheckID(q.Volume); err != nil {
		return err
	}
	base, target, done, err := r.source(q)
	if err != nil {
		return err
	}
	defer done()
	skip := 0
	if q.Resume != "" {
		if skip, err = strconv.Atoi(q.Resume); err != nil || skip < 0 {
			return fmt.Errorf("%w: %.80q is no token", provision.ErrInvalid, q.Resume)
		}
	}
	return send(ctx, pipe, base, target, skip)
}

// source returns the contents of the points that a stream reads, and keeps both until done.
func (r *Replicator) source(q provision.SendRequest) (base, target string, done func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := r.facts(q.Volume)
	if err != nil {
		return "", "", nil, err
	}
	if _, err := f.View(f.volume, false, "").Header(r.Abilities(), q); err != nil {
		return "", "", nil, err
	}
	count := func(by int) {
		if r.sending[q.Volume] == nil {
			r.sending[q.Volume] = map[lineage.Point]int{}
		}
		for _, p := range []lineage.Point{q.Base, q.Target} {
			if r.sending[q.Volume][p] += by; r.sending[q.Volume][p] == 0 {
				delete(r.sending[q.Volume], p)
			}
		}
	}
	r.p.disks.mu.Lock()
	defer r.p.disks.mu.Unlock()
	h := r.p.disks.held(q.Volume)
	if place, ok := f.Record.Place(q.Base); ok {
		base = h.places[place]
	}
	place, _ := f.Record.Place(q.Target)
	target = h.places[place]
	count(1)
	return base, target, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		count(-1)
	}, nil
}

// begin notes that a stream is received into a volume; false if one is already.
func (r *Replicator) begin(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.receiving[id] {
		return false
	}
	r.receiving[id] = true
	return true
}

func (r *Replicator) end(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.receiving, id)
}

// Places returns how many places of data all copies have together.
func (d *Disks) Places() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.copies {
		n += len(h.places)
	}
	return n
}
