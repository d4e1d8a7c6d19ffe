package lvm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
)

// thinPool is what is known of one thin pool of a group. Its sizes are promises:
// the virtual sizes of thin volumes, which take nothing of the group.
type thinPool struct {
	// size of the pool's data and foreign, what others were promised of it, in bytes.
	size, foreign int64
	// active by itself: a pool can also be live only as long as a volume of it is.
	active bool
	// managed says that Berth made the pool and keeps it as large as it is asked to be.
	managed bool
	// zeroing says that a block is zeroed before it is given to a volume.
	zeroing bool
	// health is LVM's word for a damage that the kernel does not know of.
	health string
	// suspended is what a command leaves that dies while it changes the pool: who writes to
	// a volume of it waits until it is resumed.
	suspended bool
	// kernel is what the kernel said last, told what it said when a change was signalled
	// last.
	kernel, told thinStatus
	// refused is empty, or says that the pool could not be activated and why; until it is or others changed
	// the group, as a repair does.
	refused string
}

func (g *group) ref(thin string) provision.PoolRef {
	if thin == "" {
		return provision.PoolRef{Type: provision.LVM, Name: g.name}
	}
	return provision.PoolRef{Type: provision.LVMThin, Name: g.name + "/" + thin}
}

// free is never stored, so it cannot drift from what it is made of.
func (g *group) free(thin string) int64 {
	free := g.total - g.foreign
	if p := g.pools[thin]; p != nil {
		free = p.size - p.foreign
	}
	for _, v := range g.volumes {
		if v.pool == thin {
			free -= v.size
		}
	}
	for _, s := range g.snapshots {
		if s.pool == thin {
			free -= s.size
		}
	}
	if thin == "" {
		for _, r := range g.wiping {
			free -= r.size
		}
		free -= g.cows()
	}
	return free
}

// figures are the sizes of a thin pool, or of the group itself with an empty name.
func (g *group) figures(thin string) provision.Pool {
	out := provision.Pool{PoolRef: g.ref(thin), Total: g.total, Foreign: g.foreign, Free: g.free(thin), Unit: g.unit}
	if thin == "" {
		// They are nobody's volume and go by themselves. Listing them would take a place for
		// each in what the world knows of a pool, for as long as a copy takes.
		out.Foreign += g.cows()
	}
	if p := g.pools[thin]; p != nil {
		out.Total, out.Foreign, out.Fill = p.size, p.foreign, p.kernel.fill(p.size)
	}
	return out
}

// poolTrouble is empty, or says why nothing new may be placed in a thin pool, or in
// the group itself with an empty name.
func (g *group) poolTrouble(thin string, now time.Time) string {
	if t := g.trouble(now); t != "" || thin == "" {
		return t
	}
	p, name := g.pools[thin], g.name+"/"+thin
	switch {
	case p == nil:
		return "the thin pool is gone"
	case p.health != "":
		return "LVM reports the thin pool as " + p.health
	case p.suspended:
		return suspendedPool(name)
	case !p.zeroing:
		return "what deleted volumes held could be read from new ones, for the thin pool gives out blocks unzeroed: turn zeroing on (lvchange --zero y " + name + ")"
	case p.refused != "":
		return p.refused
	default:
		return p.kernel.trouble(name)
	}
}

// takeOver keeps what was told of the pools, and tried with them, by an older state of the
// group, which may be nil. Of a pool that is new the report tells.
func (g *group) takeOver(old *group) {
	for name, p := range g.pools {
		p.told = p.kernel
		if old == nil || old.pools[name] == nil {
			continue
		}
		p.told = old.pools[name].told
		if p.asleep() && g.seqno == old.seqno {
			p.refused = old.pools[name].refused
		}
	}
}

// tell notes that all there is to know of the pools is about to be signalled.
func (g *group) tell() {
	for _, p := range g.pools {
		p.told = p.kernel
	}
}

// poolsOf returns the thin pools of some volumes; none of a group that is nil.
func (g *group) poolsOf(ids ...string) (pools []string) {
	for _, id := range ids {
		if g == nil || g.volumes[id] == nil || g.pools[g.volumes[id].pool] == nil || slices.Contains(pools, g.volumes[id].pool) {
			continue
		}
		pools = append(pools, g.volumes[id].pool)
	}
	return pools
}

// idle returns those of some thin pools that are not active by themselves.
func (g *group) idle(pools ...string) (idle []string) {
	for _, thin := range pools {
		if g != nil && g.pools[thin] != nil && (!g.pools[thin].active || g.pools[thin].asleep()) {
			idle = append(idle, thin)
		}
	}
	return idle
}

// split takes a pool's reference apart: a volume group and, unless the pool is the
// group itself, a thin pool in it.
func split(ref provision.PoolRef) (group, thin string) {
	group, thin, _ = strings.Cut(ref.Name, "/")
	return group, thin
}

func noThinPool(name string) error {
	return fmt.Errorf("%w: no thin pool is named %s", provision.ErrPoolMissing, name)
}
