package device

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Provisioner is a provision.Provisioner over the disks of this machine.
type Provisioner struct {
	config  Config
	state   state
	changed chan struct{}
	// wipes tells Run that a disk may have to be wiped.
	wipes chan struct{}
	// volumes orders the operations of each volume, pools the changes of each disk.
	volumes, pools keyed.Locks[string]
	// looks is held from asking the kernel until its answer is in the state, so that an
	// older answer never replaces a newer one.
	looks sync.Mutex
	// reported is set by each report and taken back by Run, which asks the kernel itself
	// only if no report did meanwhile.
	reported atomic.Bool
	tasks    run.Tasks
	keeps    keeps
}

var _ provision.Provisioner = (*Provisioner)(nil)

// New makes a provisioner. It starts nothing; Run watches for changes by others and
// wipes what deleted volumes left.
func New(c Config) (*Provisioner, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Provisioner{config: c, changed: make(chan struct{}, 1), wipes: make(chan struct{}, 1)}, nil
}

// Changed implements provision.Provisioner.
func (p *Provisioner) Changed() <-chan struct{} { return p.changed }

// Wait returns when no change is under way, also none whose caller gave up.
func (p *Provisioner) Wait() { p.tasks.Wait() }

// Healthy returns which disks cannot be read, from what is known without asking them.
func (p *Provisioner) Healthy() error {
	return p.state.trouble(func(*disk) bool { return true })
}

// Report implements provision.Provisioner. The error names the disks that were never read.
func (p *Provisioner) Report(ctx context.Context) ([]provision.Pool, error) {
	if err := p.refresh(ctx); err != nil {
		return nil, err
	}
	p.reported.Store(true)
	return p.state.pools(), p.state.trouble(func(d *disk) bool { return !d.read })
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

// locate returns the disk of a volume. A volume that is not known is looked for once
// more before it is declared missing.
func (p *Provisioner) locate(ctx context.Context, id string) (disk, error) {
	if ctx.Err() != nil {
		return disk{}, context.Cause(ctx)
	}
	d, err := p.state.find(id)
	if !errors.Is(err, provision.ErrNotFound) {
		return d, err
	}
	if err := p.refresh(ctx); err != nil {
		return disk{}, err
	}
	return p.state.find(id)
}

// usable says whether nothing is left to do for the volume on a disk, and sees to it
// that this stays so. A disk that does not answer is known as that then; the error is the
// cause of the context's end.
func (p *Provisioner) usable(ctx context.Context, d *disk) (bool, error) {
	if !d.content.complete || !p.ready(d) {
		return false, nil
	}
	err := p.keep(ctx, d.pool, d.volume().Device)
	if !errors.Is(err, errNoAnswer) {
		return err == nil, err
	}
	d.unreadable = err
	p.state.with(d.pool, func(known *disk) {
		if known != nil && known.same(d.Disk) {
			known.unreadable, known.stale = err, true // reading it again tells when it answers
		}
	})
	p.signal()
	return true, nil
}

// ready says whether the volume on a disk can be used as it is: the disk is still the
// one that was read, and the volume's partition is there.
func (p *Provisioner) ready(d *disk) bool {
	now, ok := p.config.Disks.Find(d.Name)
	if !ok || !now.same(d.Disk) {
		return false
	}
	v := d.volume()
	path, known := now.node(d.content.record)
	return known && path == v.Device && p.config.Disks.Leads(path, v.Identity) == nil
}

// activated completes a volume's table, makes its partition known to the kernel and
// returns the volume; with a problem if it cannot be used then.
func (p *Provisioner) activated(ctx context.Context, pool, id string) (provision.Volume, error) {
	unlock, err := p.pools.Lock(ctx, pool)
	if err != nil {
		return provision.Volume{}, err
	}
	return run.Do(ctx, &p.tasks, func(ctx context.Context) (provision.Volume, error) {
		defer unlock()
		failure := p.activateLocked(ctx, pool, id)
		d, err := p.state.find(id)
		if err != nil {
			return provision.Volume{}, err
		}
		v := d.volume()
		if v.Problem == "" && !p.ready(&d) {
			v.Problem = fmt.Sprintf("its partition %s is not there", v.Device)
			if failure != nil {
				v.Problem += ": " + failure.Error()
			}
		}
		return v, nil
	})
}

func (p *Provisioner) signal() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// nudge tells Run to look for disks that are to be wiped.
func (p *Provisioner) nudge() {
	select {
	case p.wipes <- struct{}{}:
	default:
	}
}
