package memory

import (
	"context"
	"fmt"
	"strings"

	"berth.dev/berth/internal/provision"
)

var _ provision.Manager = (*Provisioner)(nil)

// metadata is the room in units for the metadata of a thin pool that is made here, and for
// its spare.
const metadata = 2

// Ensure implements provision.Manager. It makes groups of the pools of type Device.
func (p *Provisioner) Ensure(ctx context.Context, w provision.PoolWish) (o provision.Outcome, err error) {
	if err := w.Check(); err != nil {
		return o, err
	}
	if w.Pool.Type != provision.LVM && w.Pool.Type != provision.LVMThin {
		return o, fmt.Errorf("%w: pools of type %s are not made here", provision.ErrUnsupported, w.Pool.Type)
	}
	_, err = p.change(ctx, Ensure, w.Pool.Name, func() (provision.Volume, error) {
		p.disks.mu.Lock()
		defer p.disks.mu.Unlock()
		if o = p.disks.pools.ensure(w); o.Reason.Done() {
			p.disks.notify()
		}
		return keep, nil
	})
	return o, err
}

func outcome(r provision.Reason, format string, args ...any) provision.Outcome {
	return provision.Outcome{Reason: r, Message: fmt.Sprintf(format, args...)}
}

func (d pools) ensure(w provision.PoolWish) provision.Outcome {
	if w.Pool.Type == provision.LVM {
		return d.ensureGroup(w)
	}
	return d.ensurePool(w)
}

func (d pools) ensureGroup(w provision.PoolWish) provision.Outcome {
	name, p := w.Pool.Name, d[w.Pool]
	switch {
	case p == nil && len(w.Disks) == 0:
		return outcome(provision.PoolAwaitsDisks, "there is no volume group %s, and no empty disk to make it of", name)
	case p != nil && p.problem != "":
		return outcome(provision.PoolTroubled, "volume group %s is not changed: %s", name, p.problem)
	case p != nil && !p.managed:
		return outcome(provision.PoolForeign, "volume group %s was not made by Berth", name)
	case len(w.Disks) == 0:
		return outcome(provision.PoolAsAsked, "volume group %s is as asked", name)
	}
	total, refused := d.take(w.Disks)
	switch {
	case total == 0:
		return outcome(provision.DisksRefused, "no disk was taken for volume group %s: %s", name, strings.Join(refused, ", "))
	case p != nil:
		p.total += total / p.unit * p.unit
		return outcome(provision.PoolGrown, "volume group %s was grown %s", name, strings.Join(refused, ", "))
	}
	p = newPool(PoolConfig{Total: total / defaultUnit * defaultUnit})
	p.managed = true
	d[w.Pool] = p
	return outcome(provision.PoolMade, "volume group %s was made %s", name, strings.Join(refused, ", "))
}

// take takes the disks that are empty. It returns their bytes together, and the names of the
// disks that were not empty.
func (d pools) take(names []string) (total int64, refused []string) {
	for _, name := range names {
		p := d[provision.PoolRef{Type: provision.Device, Name: name}]
		if p == nil || p.problem != "" || len(p.volumes) > 0 || len(p.foreign) > 0 {
			refused = append(refused, name+" is not empty")
			continue
		}
		total += p.total
		p.problem, p.foreign["group"] = "it carries an LVM physical volume", p.total
	}
	return total, refused
}

func (d pools) ensurePool(w provision.PoolWish) provision.Outcome {
	name, _, _ := strings.Cut(w.Pool.Name, "/")
	g, p := d[provision.PoolRef{Type: provision.LVM, Name: name}], d[w.Pool]
	switch {
	case g == nil:
		return outcome(provision.PoolAwaitsDisks, "there is no volume group %s", name)
	case g.problem != "" || p != nil && p.problem != "":
		return outcome(provision.PoolTroubled, "thin pool %s is not changed", w.Pool.Name)
	case p == nil && w.SizePercent == 0:
		return outcome(provision.PoolAbsent, "there is no thin pool %s", w.Pool.Name)
	case p == nil && !g.managed:
		return outcome(provision.PoolForeign, "volume group %s was not made by Berth", name)
	}
	reserve := metadata * g.unit
	share := min(g.total/g.unit*int64(w.SizePercent)/100*g.unit, g.total-reserve)
	if p != nil {
		return g.enlarge(w, p, share)
	}
	if share+reserve > g.free() {
		return outcome(provision.PoolNoRoom, "volume group %s has no room for thin pool %s", name, w.Pool.Name)
	}
	p = newPool(PoolConfig{Total: share, Unit: g.unit})
	p.managed = true
	d[w.Pool], g.foreign[w.Pool.Name] = p, share+reserve
	return outcome(provision.PoolMade, "thin pool %s was made", w.Pool.Name)
}

// enlarge extends a thin pool of the group that fills up, or that has less than its share.
func (g *pool) enlarge(w provision.PoolWish, p *pool, share int64) provision.Outcome {
	filling := p.total
	for e := w.Extension; e != (provision.Extension{}) && p.fill.Data >= filling/100*int64(e.At); {
		filling += max(filling/g.unit*int64(e.By)/100, 1) * g.unit
	}
	if o, due := g.extend(w.Pool.Name, p, filling, provision.PoolExtended); due {
		return o
	}
	if p.managed {
		if o, due := g.extend(w.Pool.Name, p, share, provision.PoolGrown); due {
			return o
		}
	}
	return outcome(provision.PoolAsAsked, "thin pool %s is as asked", w.Pool.Name)
}

// extend extends a thin pool of the group, as far as there is room.
func (g *pool) extend(name string, p *pool, to int64, r provision.Reason) (o provision.Outcome, due bool) {
	more := min(to-p.total, g.free()/g.unit*g.unit)
	switch {
	case to <= p.total:
		return o, false
	case more <= 0:
		return outcome(provision.PoolNoRoom, "the volume group has no room to extend thin pool %s", name), true
	}
	p.total += more
	g.foreign[name] += more
	return outcome(r, "thin pool %s was extended", name), true
}
