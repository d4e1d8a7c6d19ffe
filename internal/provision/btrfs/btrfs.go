package btrfs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/provision/engine"
)

// Provisioner is a provision.Provisioner over the filesystems of btrfs on this machine.
type Provisioner struct {
	*store
	tidier
	*manager
	replicator *Replicator
}

// store knows the filesystems and what they hold, and changes them.
type store struct {
	config Config
	engine *engine.Engine[*facts]
	// wanted are the labels that a class names. The lock of the Book guards them.
	wanted map[string]bool
}

var (
	_ provision.Full    = (*Provisioner)(nil)
	_ provision.Manager = (*Provisioner)(nil)
)

// New makes a provisioner. It starts nothing; Run watches for changes by others.
func New(c Config) (*Provisioner, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &store{config: c, wanted: map[string]bool{}}
	t := tidier{s}
	s.engine = engine.New(engine.Config[*facts]{Backend: backend{t}, Noun: "filesystem", Now: c.Now})
	return &Provisioner{store: s, tidier: t, manager: &manager{store: s, kept: map[string]*kernel.Filesystem{}}, replicator: newReplicator(s)}, nil
}

// backend is a tidier as the engine sees it.
type backend struct{ tidier }

// Loaded has all filesystems tidied: a crash may have left something.
func (b backend) Loaded(ctx context.Context) { b.tidyEach(ctx) }

func (b backend) Refresh(ctx context.Context, fsid string) { b.refresh(ctx, fsid) }

// LookAgain writes out what was changed first: what the facts show then is also on the disks.
func (b backend) LookAgain(ctx context.Context, fsid string) (cleared bool) {
	alone := false
	b.engine.With(fsid, func(u *facts) { alone = u != nil && b.namesakes(u.label) == nil })
	if alone {
		if f, err := b.config.Open(fsid, false); err == nil {
			_ = f.Commit() // if it fails, so does the next step
			f.Close()
		}
	}
	b.refresh(ctx, fsid)
	return false
}

// Fit implements engine.Backend. The plans themselves say what must not be done.
func (b backend) Fit(*facts, string, []engine.Step[*facts]) error { return nil }

// Ended has a filesystem tidied if a change left something over.
func (b backend) Ended(ctx context.Context, fsid string) { b.tidySoon(ctx, fsid) }

// Changed implements provision.Provisioner.
func (p *Provisioner) Changed() <-chan struct{} { return p.engine.Changed }

// Wait returns when no change is under way, also none whose caller gave up.
func (p *Provisioner) Wait() { p.engine.Tasks.Wait() }

// Healthy returns nil as long as every filesystem answers.
func (p *Provisioner) Healthy() error {
	for _, u := range p.engine.All() {
		if u.Silent != nil || u.Stuck(p.config.Now()) {
			return u.usable(p.config.Now())
		}
	}
	return nil
}

// Report implements provision.Provisioner.
func (p *Provisioner) Report(ctx context.Context) ([]provision.Pool, error) {
	if err := p.engine.RefreshDue(ctx); err != nil {
		return nil, err
	}
	return p.pools(p.config.Now()), nil
}

// pools returns the pools as they are known. Of several filesystems with one label none is
// believed, and one that is missing adds only its volumes to another.
func (p *store) pools(now time.Time) (pools []provision.Pool) {
	p.engine.Lock()
	defer p.engine.Unlock()
	key := func(u *facts) string { return fmt.Sprintf("%s %v %s", u.label, u.missing, u.fsid) } // false sorts before true
	units := slices.SortedFunc(maps.Values(p.engine.Units()), func(a, b *facts) int { return strings.Compare(key(a), key(b)) })
	for _, u := range units {
		pool := u.pool(now)
		mark := func(id string, problem *string) {
			if _, err := p.holder(id); err != nil {
				*problem = provision.Problem(err)
			}
		}
		for i := range pool.Volumes {
			mark(pool.Volumes[i].ID, &pool.Volumes[i].Problem)
		}
		for i := range pool.Snapshots {
			mark(pool.Snapshots[i].ID, &pool.Snapshots[i].Problem)
		}
		if err := p.namesakes(u.label); err != nil {
			pool.Problem = provision.Problem(err)
		}
		if last := len(pools) - 1; last >= 0 && pools[last].Name == pool.Name {
			pools[last].Volumes = append(pools[last].Volumes, pool.Volumes...)
			pools[last].Snapshots = append(pools[last].Snapshots, pool.Snapshots...)
			continue
		}
		pools = append(pools, pool)
	}
	return pools
}

// namesakes returns why a pool cannot be used if several filesystems have its label. The caller
// holds the lock of the Book.
func (p *store) namesakes(label string) error {
	var all []string
	for fsid, u := range p.engine.Units() {
		if u.label == label && !u.missing {
			all = append(all, fsid)
		}
	}
	if len(all) < 2 {
		return nil
	}
	slices.Sort(all)
	return fmt.Errorf("%w: the filesystems %s are all labelled %s, and none of them is used: unmount or relabel those that are copies (btrfs filesystem label)",
		provision.ErrUnavailable, strings.Join(all, " and "), label)
}

// holder returns the filesystem that holds the volume or snapshot of an id; empty if there is
// none. The caller holds the lock of the Book.
func (p *store) holder(id string) (fsid string, err error) {
	var there, away []*facts
	for _, u := range p.engine.Units() {
		switch {
		case u.volumes[id] == nil && u.snapshots[id] == nil:
		case u.missing:
			away = append(away, u)
		default:
			there = append(there, u)
		}
	}
	if len(there) == 0 {
		there = away
	}
	switch len(there) {
	case 0:
		return "", nil
	case 1:
		return there[0].fsid, p.namesakes(there[0].label)
	}
	return "", fmt.Errorf("%w: %s is in %d filesystems, and used in none: remove the copies (they are in %s of each)", provision.ErrConflict, id, len(there), home)
}

// locate returns the filesystem that holds an id. If one of several namesakes has volumes, nothing
// is certain.
func (p *store) locate(ctx context.Context, id string) (fsid string, err error) {
	err = p.engine.Locate(ctx, id, func() (ok bool, err error) {
		p.engine.Lock()
		defer p.engine.Unlock()
		fsid, err = p.holder(id)
		return fsid != "" || err != nil, err
	}, p.engine.RefreshDue)
	if !errors.Is(err, provision.ErrNotFound) {
		return fsid, err
	}
	p.engine.Lock()
	defer p.engine.Unlock()
	for _, u := range p.engine.Units() {
		if twins := p.namesakes(u.label); twins != nil && len(u.volumes)+len(u.snapshots) > 0 {
			return "", twins
		}
	}
	return "", err
}

// Get implements provision.Provisioner.
func (p *Provisioner) Get(ctx context.Context, id string) (v provision.Volume, err error) {
	if err := provision.CheckID(id); err != nil {
		return v, err
	}
	fsid, err := p.locate(ctx, id)
	if err != nil {
		return v, err
	}
	return p.view(fsid, id)
}

func (p *store) view(fsid, id string) (v provision.Volume, err error) {
	err = fmt.Errorf("%w: %s", provision.ErrNotFound, id)
	p.engine.With(fsid, func(u *facts) {
		if u != nil && u.volumes[id] != nil {
			v, err = u.view(u.volumes[id]), nil
		}
	})
	return v, err
}

// Run watches for changes by others until ctx ends, then waits for the changes under way.
func (p *Provisioner) Run(ctx context.Context) error {
	defer p.release()
	defer p.Wait()
	look := func(ctx context.Context) {
		_ = backend{p.tidier}.Discover(ctx) // the next report returns the error
		p.tidyEach(ctx)
	}
	p.engine.Watch(ctx, engine.Watch{Look: look, Interval: watchInterval, Refresh: p.config.RefreshInterval, Pools: p.pools})
	return nil
}
