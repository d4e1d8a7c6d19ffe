package lvm

import (
	"context"

	"berth.dev/berth/internal/provision"
)

// GoOn takes the next step of a copy of a thick volume, as if it was due a moment ago.
func (p *Provisioner) GoOn(ctx context.Context, group, id string) error {
	return p.copier.goOn(ctx, group, id)
}

// WipeRemnant wipes and removes a remnant, as if it was one a moment ago.
func (p *Provisioner) WipeRemnant(ctx context.Context, group, name string) error {
	return p.wiper.wipeRemnant(ctx, group, name)
}

// Halted returns how many copies other operations keep from being filled.
func (p *Provisioner) Halted() int {
	p.copier.running.mu.Lock()
	defer p.copier.running.mu.Unlock()
	return len(p.copier.running.halted)
}

// Waiting returns how many volumes and snapshots wait to be removed.
func (p *Provisioner) Waiting() (n int) {
	p.remover.removals.mu.Lock()
	defer p.remover.removals.mu.Unlock()
	for _, waiting := range p.remover.removals.waiting {
		n += len(waiting)
	}
	return n
}

// Taken has removals wait for one pool, and the caller of one of them take atMost. It returns those
// that are taken, and those that still wait.
func Taken(ids []string, caller string, atMost int) (taken, left []string) {
	var q removals
	of := &removal{}
	for _, id := range ids {
		r := &removal{change: change{id: id}}
		if q.add(r); id == caller {
			of = r
		}
	}
	for _, r := range q.take(of, atMost) {
		taken = append(taken, r.id)
	}
	for _, r := range q.waiting[provision.PoolRef{}] {
		left = append(left, r.id)
	}
	return taken, left
}
