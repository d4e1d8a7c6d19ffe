package memory

import (
	"context"
	"time"

	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Provisioner carves volumes out of Disks.
type Provisioner struct {
	disks       *Disks
	disturbance Disturbance
	changed     <-chan struct{}
	locks       keyed.Locks[string]
	tasks       run.Tasks
	replicator  *Replicator
}

var _ provision.Provisioner = (*Provisioner)(nil)

// New makes a provisioner over disks. A nil disturbance disturbs nothing.
func New(d *Disks, disturbance Disturbance) *Provisioner {
	if disturbance == nil {
		disturbance = calm{}
	}
	p := &Provisioner{disks: d, disturbance: disturbance, changed: d.watch()}
	p.replicator = NewReplicator(p, time.Now)
	return p
}

// Wait returns when no change is running, including changes whose callers gave up.
func (p *Provisioner) Wait() { p.tasks.Wait() }

// Changed implements provision.Provisioner.
func (p *Provisioner) Changed() <-chan struct{} { return p.changed }

// Report implements provision.Provisioner.
func (p *Provisioner) Report(ctx context.Context) ([]provision.Pool, error) {
	return disturbed(ctx, p, Report, "", func() ([]provision.Pool, error) { return p.disks.report(), nil })
}

// Get implements provision.Provisioner.
func (p *Provisioner) Get(ctx context.Context, id string) (provision.Volume, error) {
	if err := provision.CheckID(id); err != nil {
		return provision.Volume{}, err
	}
	return disturbed(ctx, p, Get, id, func() (provision.Volume, error) {
		return p.disks.edit(id, func(*pool, provision.Volume) (provision.Volume, error) { return keep, nil })
	})
}

// Create implements provision.Provisioner.
func (p *Provisioner) Create(ctx context.Context, r provision.CreateRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	return p.change(ctx, Create, r.ID, func() (provision.Volume, error) { return p.disks.create(r) })
}

// Expand implements provision.Provisioner.
func (p *Provisioner) Expand(ctx context.Context, r provision.ExpandRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	return p.change(ctx, Expand, r.ID, func() (provision.Volume, error) {
		return p.disks.edit(r.ID, func(pool *pool, v provision.Volume) (provision.Volume, error) {
			size := provision.RoundUp(r.Size, pool.unit)
			if size <= v.Size {
				return keep, nil
			}
			if err := r.Limits.Admit(pool.figures(v.Pool), size-v.Size); err != nil {
				return keep, err
			}
			v.Size = size
			return v, nil
		})
	})
}

// Format implements provision.Provisioner.
func (p *Provisioner) Format(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	return p.change(ctx, Format, r.ID, func() (provision.Volume, error) {
		return p.disks.edit(r.ID, func(_ *pool, v provision.Volume) (provision.Volume, error) {
			if met, err := r.Met(v); met || err != nil {
				return keep, err
			}
			v.Filesystem = r.Filesystem
			if r.Makes() {
				p.disks.formats[r.ID]++ // under the disks' lock
			}
			return v, nil
		})
	})
}

// Delete implements provision.Provisioner.
func (p *Provisioner) Delete(ctx context.Context, id string) error {
	if err := provision.CheckID(id); err != nil {
		return err
	}
	_, err := p.change(ctx, Delete, id, func() (provision.Volume, error) { return keep, p.disks.remove(id) })
	return err
}

// change carries an operation to its end even if its caller gives up.
func (p *Provisioner) change(ctx context.Context, op Operation, id string, do func() (provision.Volume, error)) (provision.Volume, error) {
	unlock, err := p.locks.Lock(ctx, id)
	if err != nil {
		return provision.Volume{}, err
	}
	return run.Do(ctx, &p.tasks, func(ctx context.Context) (provision.Volume, error) {
		defer unlock()
		return disturbed(ctx, p, op, id, do)
	})
}

func disturbed[T any](ctx context.Context, p *Provisioner, op Operation, id string, do func() (T, error)) (T, error) {
	var none T
	if err := p.disturbance.Before(ctx, op, id); err != nil {
		return none, err
	}
	result, err := do()
	if lost := p.disturbance.After(ctx, op, id); lost != nil {
		return none, lost
	}
	return result, err
}
