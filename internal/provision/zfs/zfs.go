package zfs

import (
	"context"
	"fmt"
	"sync"

	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Provisioner is a provision.Provisioner over the zpools of this machine.
type Provisioner struct {
	config  Config
	state   state
	changed chan struct{}
	// ids orders the operations of each volume and snapshot, zpools keeps the reading of
	// each zpool from what changes it, and reports orders the reading of what is stale.
	ids, zpools, reports keyed.Locks[string]
	tasks                run.Tasks
	tidyOnce             sync.Once

	// findings are about zpools that classes ask for.
	findings findings
}

var _ provision.Full = (*Provisioner)(nil)

// New makes a provisioner. It starts nothing; Run watches for changes by others.
func New(c Config) (*Provisioner, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Provisioner{config: c, changed: make(chan struct{}, 1)}, nil
}

// Changed implements provision.Provisioner.
func (p *Provisioner) Changed() <-chan struct{} { return p.changed }

// Wait returns when no change is under way, also none whose caller gave up.
func (p *Provisioner) Wait() { p.tasks.Wait() }

// Healthy returns nil as long as ZFS answers and its programs go with the kernel's
// module. It starts no process.
func (p *Provisioner) Healthy() error { return p.state.unanswered(p.config.Now()) }

// Report implements provision.Provisioner. It reads again what others may have
// changed, and nothing else. Zpools for which ZFS does not answer are reported from
// what is known, with a problem that says so.
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
	if _, err := p.locateVolume(ctx, id); err != nil {
		return provision.Volume{}, err
	}
	return p.ready(ctx, id)
}

// volumeIn, unfinishedIn and snapshotIn say whether a zpool holds what bears an id: a volume,
// what a crash left of one, or a snapshot.
func volumeIn(z *zpool, id string) bool     { _, d := z.volume(id); return d != nil }
func unfinishedIn(z *zpool, id string) bool { return len(z.unfinished(id)) > 0 }
func snapshotIn(z *zpool, id string) bool   { _, s := z.snapshot(id); return s != nil }

// locateVolume and locateSnapshot return the zpool that holds what bears an id.
func (p *Provisioner) locateVolume(ctx context.Context, id string) (string, error) {
	return p.locate(ctx, id, volumeIn, p.lookForVolumes)
}

func (p *Provisioner) locateSnapshot(ctx context.Context, id string) (string, error) {
	return p.locate(ctx, id, snapshotIn, p.lookForSnapshots)
}

// locate looks again for what is not known before it is declared missing.
func (p *Provisioner) locate(ctx context.Context, id string, holds func(*zpool, string) bool, look func(context.Context) error) (string, error) {
	for _, look := range []func(context.Context) error{p.load, look} {
		if err := look(ctx); err != nil {
			return "", err
		}
		if name, ok := p.state.find(id, holds); ok {
			return name, p.state.twins(id)
		}
	}
	if name, ok := p.state.unread(); ok {
		return "", fmt.Errorf("%w: %s may be in zpool %s, which was never read", provision.ErrUnavailable, id, name)
	}
	return "", notFound(id)
}

// ready returns a volume whose device is there, or one with a problem.
func (p *Provisioner) ready(ctx context.Context, id string) (v provision.Volume, err error) {
	err = notFound(id)
	var dataset string
	p.state.each(func(z *zpool) {
		if name, d := z.volume(id); d != nil {
			v, dataset, err = z.view(name, p.config.Now()), name, nil
		}
	})
	if err != nil || v.Problem != "" || provision.IsDataset(v.Device) {
		return v, err
	}
	if err := p.config.Devices.Locate(ctx, dataset); err != nil {
		if ctx.Err() != nil {
			return provision.Volume{}, context.Cause(ctx)
		}
		v.Problem = "the device of zvol " + dataset + " is not there: " + provision.Problem(err)
	}
	return v, nil
}

func notFound(id string) error { return fmt.Errorf("%w: %s", provision.ErrNotFound, id) }

func (p *Provisioner) signal() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}
