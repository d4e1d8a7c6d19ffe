package device

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
	"berth.dev/berth/internal/signal"
)

// Provisioner is a provision.Provisioner over the disks of this machine.
type Provisioner struct {
	*changer
	wiper   wiper
	watcher watcher
}

// reader asks the kernel and the disks, and keeps their answers.
type reader struct {
	config  Config
	state   state
	changed signal.Signal
	// wipes tells Run that a disk may have to be wiped.
	wipes signal.Signal
	// pools orders the changes of each disk.
	pools keyed.Locks[string]
	// looks is held from asking the kernel until its answer is in the state, so that an
	// older answer never replaces a newer one.
	looks sync.Mutex
	keeps keeps
}

// changer makes and removes volumes.
type changer struct {
	*reader
	// volumes orders the operations of each volume. Its lock is taken before that of a disk.
	volumes keyed.Locks[string]
	tasks   run.Tasks
}

var _ provision.Provisioner = (*Provisioner)(nil)

// New makes a provisioner. It starts nothing; Run watches for changes by others and
// wipes the disks of deleted volumes.
func New(c Config) (*Provisioner, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &reader{config: c, changed: signal.New(), wipes: signal.New()}
	made := &changer{reader: r}
	return &Provisioner{changer: made, wiper: wiper{r}, watcher: watcher{reader: r}}, nil
}

// Changed implements provision.Provisioner.
func (p *Provisioner) Changed() <-chan struct{} { return p.changed }

// Wait returns when no change is under way, also none whose caller gave up.
func (p *Provisioner) Wait() { p.tasks.Wait() }

// Healthy returns which disks cannot be read, from the known facts. It reads no disk.
func (p *Provisioner) Healthy() error {
	return p.state.trouble(func(*disk) bool { return true })
}

// Report implements provision.Provisioner. The error names the disks that were never read.
func (p *Provisioner) Report(ctx context.Context) ([]provision.Pool, error) {
	if err := p.refresh(ctx); err != nil {
		return nil, err
	}
	p.watcher.reported.Store(true)
	return p.state.pools(), p.state.trouble(func(d *disk) bool { return d.Read.IsZero() })
}

// Get implements provision.Provisioner.
func (p *Provisioner) Get(ctx context.Context, id string) (provision.Volume, error) {
	if err := provision.CheckID(id); err != nil {
		return provision.Volume{}, err
	}
	d, err := p.locate(ctx, id)
	if err != nil {
		return provision.Volume{}, err
	}
	if d.volume().Problem != "" {
		return d.volume(), nil
	}
	if usable, err := p.usable(ctx, &d); usable || err != nil {
		return d.volume(), err
	}
	return p.activated(ctx, d.pool, id)
}

// locate returns the disk of a volume. It believes no disk before all of them were looked at:
// another may hold a copy. It looks once more for a volume that is not known before it says
// that the volume is missing.
func (r *reader) locate(ctx context.Context, id string) (disk, error) {
	if ctx.Err() != nil {
		return disk{}, context.Cause(ctx)
	}
	if r.state.seen() {
		if d, err := r.state.find(id); !errors.Is(err, provision.ErrNotFound) {
			return d, err
		}
	}
	if err := r.refresh(ctx); err != nil {
		return disk{}, err
	}
	return r.state.find(id)
}

// usable says whether nothing is left to do for the volume on a disk, and keeps the
// partition open so that this stays so. If the disk does not answer, usable notes that and
// returns true. The error is the cause of the context's end.
func (c *changer) usable(ctx context.Context, d *disk) (bool, error) {
	if !d.content.complete || !c.ready(d) {
		return false, nil
	}
	err := c.keep(ctx, d.pool, d.volume().Content.Source)
	if !errors.Is(err, errNoAnswer) {
		return err == nil, err
	}
	d.unreadable = err
	c.state.With(d.pool, func(known *disk) {
		if known != nil && known.same(d.Disk) {
			known.unreadable = err
			c.state.Touch(known) // reading it again tells when it answers
		}
	})
	c.changed.Set()
	return true, nil
}

// ready says whether the volume on a disk can be used as it is: the disk is still the
// one that was read, and the volume's partition is there.
func (r *reader) ready(d *disk) bool {
	now, ok := r.config.Disks.Find(d.Name)
	if !ok || !now.same(d.Disk) {
		return false
	}
	v := d.volume()
	path, known := now.node(d.content.record)
	return known && path == v.Content.Source && r.config.Disks.Leads(path, v.Content.Identity) == nil
}

// activated completes a volume's table, makes its partition known to the kernel and
// returns the volume; with a problem if it cannot be used then.
func (c *changer) activated(ctx context.Context, pool, id string) (provision.Volume, error) {
	unlock, err := c.pools.Lock(ctx, pool)
	if err != nil {
		return provision.Volume{}, err
	}
	return run.Do(ctx, &c.tasks, func(ctx context.Context) (provision.Volume, error) {
		defer unlock()
		failure := c.activateLocked(ctx, pool, id)
		d, err := c.state.find(id)
		if err != nil {
			return provision.Volume{}, err
		}
		v := d.volume()
		if v.Problem == "" && !c.ready(&d) {
			v.Problem = fmt.Sprintf("its partition %s is not there", v.Content.Source)
			if failure != nil {
				v.Problem += ": " + failure.Error()
			}
		}
		return v, nil
	})
}

// nudge tells Run to look for disks that are to be wiped.
func (r *reader) nudge() {
	r.wipes.Set()
}
