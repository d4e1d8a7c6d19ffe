package shell

import (
	"context"
	"slices"
	"sync"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision/shared"
)

var mistakesOfMany = []mistake{
	{class: answeredEarly, name: "expelled-in-words", seen: 15, ofMany: true, thought: "a registration that shall go is gone",
		disks: targets(func(d shared.Disks) shared.Disks { return &believing{Disks: d} })},
	{class: nilOnError, name: "no-keys", seen: 15, ofMany: true, thought: "keys that were not read are none",
		disks: targets(func(d shared.Disks) shared.Disks { return keyless{d} })},
	{class: staleRead, name: "registered-once", seen: 11, ofMany: true, thought: "a session that is registered stays so",
		disks: targets(func(d shared.Disks) shared.Disks { return &faithful{Disks: d} })},
}

// noted are keys that a process has in mind, by volume.
type noted struct {
	mu   sync.Mutex
	keys map[string][]ownership.RawKey
}

func (n *noted) notes(of shared.Disk, keys ...ownership.RawKey) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.keys == nil {
		n.keys = map[string][]ownership.RawKey{}
	}
	n.keys[of.Volume] = keys
}

func (n *noted) of(of shared.Disk) []ownership.RawKey {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.keys[of.Volume])
}

// believing removes no registration, and sees it no more.
type believing struct {
	shared.Disks
	gone noted
}

func (x *believing) Reserve(ctx context.Context, of shared.Disk, expect, key ownership.RawKey) error {
	if expect == 0 {
		return x.Disks.Reserve(ctx, of, expect, key)
	}
	x.gone.notes(of, append(x.gone.of(of), expect)...)
	return nil
}

func (x *believing) Look(ctx context.Context, of shared.Disk) (shared.View, error) {
	v, err := x.Disks.Look(ctx, of)
	gone := x.gone.of(of)
	v.Keys = slices.DeleteFunc(slices.Clone(v.Keys), func(k ownership.RawKey) bool { return slices.Contains(gone, k) })
	return v, err
}

type keyless struct{ shared.Disks }

func (x keyless) Look(ctx context.Context, of shared.Disk) (shared.View, error) {
	v, err := x.Disks.Look(ctx, of)
	v.Keys = nil
	return v, err
}

// faithful sees the registration that it made last.
type faithful struct {
	shared.Disks
	made noted
}

func (x *faithful) Register(ctx context.Context, of shared.Disk, key ownership.RawKey, use shared.Use) error {
	err := x.Disks.Register(ctx, of, key, use)
	if err == nil {
		x.made.notes(of, key)
	}
	return err
}

func (x *faithful) Look(ctx context.Context, of shared.Disk) (shared.View, error) {
	v, err := x.Disks.Look(ctx, of)
	if made := x.made.of(of); len(made) > 0 && v.Link == ownership.Attached {
		v.Registered = made[0]
	}
	return v, err
}
