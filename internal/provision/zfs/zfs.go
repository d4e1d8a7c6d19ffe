package zfs

import (
	"context"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/provision/zfs/zpool"
)

// Provisioner is a provision.Provisioner over the zpools of this machine.
type Provisioner struct {
	tidier
	manager    manager
	replicator *Replicator
}

var _ provision.Full = (*Provisioner)(nil)

// New makes a provisioner. It starts nothing; Run watches for changes by others.
func New(c Config) (*Provisioner, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &reader{config: c, tool: zpool.Tool{Program: c.Program}, poolTool: zpool.PoolTool{Program: c.Zpool}}
	p := &Provisioner{tidier: tidier{changer{r}}, manager: manager{reader: r}}
	r.engine = engine.New(engine.Config[*zpool.Facts]{Backend: backend{p}, Noun: "zpool", Together: true, Now: c.Now})
	r.state.Book = &r.engine.Book
	p.replicator = newReplicator(p)
	return p, nil
}

// Changed implements provision.Provisioner.
func (p *Provisioner) Changed() <-chan struct{} { return p.engine.Changed }

// Wait returns when no change is under way, also none whose caller gave up.
func (p *Provisioner) Wait() { p.engine.Tasks.Wait() }

// Healthy returns nil as long as ZFS answers and its programs go with the kernel's
// module. It starts no process.
func (p *Provisioner) Healthy() error { return p.state.unanswered(p.config.Now()) }

// Report implements provision.Provisioner. It reads only the zpools again that others may
// have changed. If ZFS does not answer for a zpool, it reports the facts known so far, with
// a problem that says so.
func (p *Provisioner) Report(ctx context.Context) ([]provision.Pool, error) {
	if err := p.engine.RefreshDue(ctx); err != nil {
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

// volumeIn, unfinishedIn and snapshotIn say whether a zpool holds a volume of an id, a volume of
// the id that a crash left half made, or a snapshot of the id.
func volumeIn(z *zpool.Facts, id string) bool     { _, d := z.Volume(id); return d != nil }
func unfinishedIn(z *zpool.Facts, id string) bool { return len(z.Unfinished(id)) > 0 }
func snapshotIn(z *zpool.Facts, id string) bool   { _, s := z.Snapshot(id); return s != nil }

// locateVolume and locateSnapshot return the zpool that holds the volume or snapshot of an id.
func (p *Provisioner) locateVolume(ctx context.Context, id string) (string, error) {
	return p.locate(ctx, id, volumeIn, p.lookForVolumes)
}

func (p *Provisioner) locateSnapshot(ctx context.Context, id string) (string, error) {
	return p.locate(ctx, id, snapshotIn, p.lookForSnapshots)
}

// locate returns the zpool for which holds is true of an id. It looks again for an unknown id
// before it says that the id is missing.
func (p *Provisioner) locate(ctx context.Context, id string, holds func(*zpool.Facts, string) bool, look func(context.Context) error) (holder string, err error) {
	err = p.engine.Locate(ctx, id, func() (ok bool, err error) {
		if holder, ok = p.state.find(id, holds); ok {
			err = p.state.twins(id)
		}
		return ok, err
	}, look)
	return holder, err
}

// ready returns a volume whose device is there, or one with a problem.
func (p *Provisioner) ready(ctx context.Context, id string) (v provision.Volume, err error) {
	err = zpool.NotFound(id)
	var dataset string
	for _, z := range p.engine.All() {
		if name, d := z.Volume(id); d != nil {
			v, dataset, err = z.View(name, p.config.Now()), name, nil
		}
	}
	if err != nil || v.Problem != "" || v.Content.IsTree() {
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
