package shell

import (
	"context"
	"sync"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision/shared"
)

func targets(f func(d shared.Disks) shared.Disks) seam[shared.Disks] {
	return func(_ *process, right shared.Disks) shared.Disks { return f(right) }
}

var mistakesOfDisks = []mistake{
	{class: nilOnError, name: "flush-error", seen: 27, thought: "the volume is unmounted, so everything is written", disks: targets(func(d shared.Disks) shared.Disks { return unflushed{d} })},
	{class: conflictLost, name: "reserved-blindly", seen: 789, thought: "this node is the owner, whoever has the reservation",
		disks: func(p *process, _ shared.Disks) shared.Disks { return grabbing{disks{p}} }},
	{class: outOfOrder, name: "pages-kept", seen: 178, thought: "a session that registers anew may keep its pages",
		disks: targets(func(d shared.Disks) shared.Disks { return keeping{d} })},
	{class: staleRead, name: "disk-looked-at-once", thought: "a disk changes by what this node does",
		disks: targets(func(d shared.Disks) shared.Disks { return &remembering{Disks: d, seen: map[string]shared.View{}} })},
	{class: answeredEarly, name: "flushed-later", seen: 27, thought: "the kernel writes the pages soon",
		disks: func(p *process, d shared.Disks) shared.Disks { return lazily{d, p} }},
}

type unflushed struct{ shared.Disks }

func (x unflushed) Flush(ctx context.Context, of shared.Disk) error {
	_ = x.Disks.Flush(ctx, of)
	return nil
}

type grabbing struct{ disks }

func (x grabbing) Reserve(ctx context.Context, of shared.Disk, _, key ownership.RawKey) error {
	return x.call(ctx, "Reserve", of, func() error {
		n := x.node(of)
		v, err := n.Look(ctx, of)
		if err != nil {
			return err
		}
		if err = n.Reserve(ctx, of, v.Holder, key); err == nil {
			x.p.w.oracle.reserves(x.p, v.Holder, key)
		}
		return err
	})
}

type keeping struct{ shared.Disks }

func (x keeping) Register(ctx context.Context, of shared.Disk, key ownership.RawKey, _ shared.Use) error {
	return x.Disks.Register(ctx, of, key, shared.OwnMount)
}

// remembering looks at a disk anew only after a step of this node.
type remembering struct {
	shared.Disks
	mu   sync.Mutex
	seen map[string]shared.View
}

func (x *remembering) Look(ctx context.Context, of shared.Disk) (shared.View, error) {
	x.mu.Lock()
	v, found := x.seen[of.Volume]
	x.mu.Unlock()
	if found {
		return v, nil
	}
	v, err := x.Disks.Look(ctx, of)
	if err == nil && v.Link == ownership.Attached {
		x.mu.Lock()
		x.seen[of.Volume] = v
		x.mu.Unlock()
	}
	return v, err
}

func (x *remembering) forgets(of shared.Disk) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.seen, of.Volume)
}

func (x *remembering) Detach(ctx context.Context, of shared.Disk) error {
	defer x.forgets(of)
	return x.Disks.Detach(ctx, of)
}

func (x *remembering) Register(ctx context.Context, of shared.Disk, key ownership.RawKey, use shared.Use) error {
	defer x.forgets(of)
	return x.Disks.Register(ctx, of, key, use)
}

func (x *remembering) Reserve(ctx context.Context, of shared.Disk, expect, key ownership.RawKey) error {
	defer x.forgets(of)
	return x.Disks.Reserve(ctx, of, expect, key)
}

type lazily struct {
	shared.Disks
	p *process
}

func (x lazily) Flush(_ context.Context, of shared.Disk) error {
	go func() { _ = x.Disks.Flush(x.p.ctx, of) }()
	return nil
}
