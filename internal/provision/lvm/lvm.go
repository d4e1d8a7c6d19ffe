package lvm

import (
	"context"
	"fmt"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/provision/lvm/group"
)

// Provisioner is a provision.Provisioner over the volume groups of this machine and
// the thin pools in them.
type Provisioner struct {
	*changer
	remover remover
	copier  copier
	wiper   wiper
	watcher watcher
	manager manager
}

// New makes a provisioner. It starts nothing; Run watches for changes by others.
func New(c Config) (*Provisioner, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &reader{config: c, tool: group.Tool{Program: c.Program, Udev: c.Udev}}
	w := &waker{reader: r}
	made := &changer{waker: w}
	p := &Provisioner{changer: made, remover: remover{changer: made}, manager: manager{waker: w}}
	p.copier.changer, p.wiper.changer, p.watcher.changer = made, made, made
	r.engine = engine.New(engine.Config[*group.Facts]{Backend: backend{w}, Noun: "volume group", Now: time.Now})
	r.state.Book = &r.engine.Book
	p.wiper.chores = newChores((*group.Facts).Remains, p.wiper.wipeRemnant)
	p.copier.chores = newChores(func(g *group.Facts) map[string]*group.Tries { return p.copier.running.without(g.Copies()) }, p.copier.goOn)
	p.watcher.chores = []*chores{p.copier.chores, p.wiper.chores}
	r.nudge = func() {
		for _, c := range p.watcher.chores {
			c.kick()
		}
	}
	r.seen = func(ctx context.Context) {
		p.activateAll(ctx)
		p.mend(ctx)
	}
	return p, nil
}

// Changed implements provision.Provisioner.
func (p *Provisioner) Changed() <-chan struct{} { return p.engine.Changed }

// Wait returns when no change is under way, not even one whose caller gave up.
func (p *Provisioner) Wait() { p.engine.Tasks.Wait() }

// Healthy returns why LVM cannot be used, from the cache, without asking LVM.
func (p *Provisioner) Healthy() error { return p.state.trouble(time.Now()) }

// Report implements provision.Provisioner. It reads again only the groups that others may have
// changed. Groups for which LVM does not answer are reported from the cache, with a problem that
// says how old that is.
func (p *Provisioner) Report(ctx context.Context) ([]provision.Pool, error) {
	if err := p.engine.RefreshDue(ctx); err != nil {
		return nil, err
	}
	return p.state.pools(time.Now()), nil
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
	name, _ := group.Split(pool)
	v, err := p.view(name, id)
	if err != nil || v.Problem != "" || p.config.Devices.Leads(v.Content.Source, v.Content.Identity) == nil {
		return v, err
	}
	return p.activated(ctx, name, id)
}

// locate returns the pool of a volume or a snapshot. An id that is not known is looked for once
// in a fresh report before it is declared missing. ErrConflict says that two groups hold it.
func (p *reader) locate(ctx context.Context, id string) (pool provision.PoolRef, err error) {
	err = p.engine.Locate(ctx, id, func() (ok bool, err error) {
		pool, ok, err = p.state.find(id)
		return ok, err
	}, p.refreshAll)
	return pool, err
}

// view returns a volume as it is known now.
func (p *reader) view(name, id string) (v provision.Volume, err error) {
	p.engine.With(name, func(g *group.Facts) {
		if g == nil || g.Volumes[id] == nil {
			err = fmt.Errorf("%w: %s", provision.ErrNotFound, id)
			return
		}
		v = g.View(id)
	})
	return v, err
}
