package lvm

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Provisioner is a provision.Provisioner over the volume groups of this machine and
// the thin pools in them.
type Provisioner struct {
	config  Config
	state   state
	guard   guard
	changed chan struct{}
	// volumes orders the operations of each volume, groups the changes of each volume
	// group, and reports the reading of what is stale.
	volumes, groups, reports keyed.Locks[string]
	// removals wait for their groups.
	removals             removals
	tasks                run.Tasks
	firstLook            sync.Once
	checks, looks, mends checks
	// readings are physical volumes of which the number is being read, and strangers devices
	// that may have become some.
	readings  checks
	strangers strangers
	// behind counts the queries that could not be ended.
	behind atomic.Int64
	// copies are filled, and what deleted volumes left is wiped.
	copies, wipes *chores
	// copying are the copies that are being filled.
	copying transfers
}

// New makes a provisioner. It starts nothing; Run watches for changes by others.
func New(c Config) (*Provisioner, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Provisioner{config: c, changed: make(chan struct{}, 1)}
	p.wipes = newChores((*group).remains, p.wipeRemnant)
	p.copies = newChores(func(g *group) map[string]*tries { return p.copying.without(g.copies()) }, p.goOn)
	return p, nil
}

// Changed implements provision.Provisioner.
func (p *Provisioner) Changed() <-chan struct{} { return p.changed }

// Wait returns when no change is under way, also none whose caller gave up.
func (p *Provisioner) Wait() { p.tasks.Wait() }

// Healthy returns why LVM cannot be used, from what is known without asking it.
func (p *Provisioner) Healthy() error { return p.state.trouble(p.config.Now()) }

// Report implements provision.Provisioner. It reads again what others may have
// changed, and nothing else. Groups for which LVM does not answer are reported from
// what is known, with a problem that says how old that is.
func (p *Provisioner) Report(ctx context.Context) ([]provision.Pool, error) {
	if err := p.refreshDue(ctx); err != nil {
		return nil, err
	}
	return p.state.pools(p.config.Now()), nil
}

// Get implements provision.Provisioner.
func (p *Provisioner) Get(ctx context.Context, id string) (provision.Volume, error) {
	if err := provision.CheckID(id); err != nil {
		return provision.Volume{}, err
	}
	pool, err := p.locate(ctx, id)
	if err != nil {
		return provision.Volume{}, err
	}
	name, _ := split(pool)
	v, err := p.view(name, id)
	if err != nil || v.Problem != "" || p.config.Devices.Leads(v.Device, v.Identity) == nil {
		return v, err
	}
	return p.activated(ctx, name, id)
}

// locate returns the pool of a volume or a snapshot. What is not known is looked for
// once in a fresh report before it is declared missing. ErrConflict says that there are two.
func (p *Provisioner) locate(ctx context.Context, id string) (pool provision.PoolRef, err error) {
	if err := p.load(ctx); err != nil {
		return pool, err
	}
	if pool, ok, err := p.state.find(id); ok {
		return pool, err
	}
	if err := p.refreshAll(ctx); err != nil {
		return pool, err
	}
	if pool, ok, err := p.state.find(id); ok {
		return pool, err
	}
	if name, ok := p.state.unread(); ok {
		return pool, fmt.Errorf("%w: %s may be in volume group %s, which was never read", provision.ErrUnavailable, id, name)
	}
	return pool, fmt.Errorf("%w: %s", provision.ErrNotFound, id)
}

// view returns a volume as it is known now.
func (p *Provisioner) view(name, id string) (v provision.Volume, err error) {
	p.state.with(name, func(g *group) {
		if g == nil || g.volumes[id] == nil {
			err = fmt.Errorf("%w: %s", provision.ErrNotFound, id)
			return
		}
		v = g.view(id)
	})
	return v, err
}

func (p *Provisioner) signal() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}
