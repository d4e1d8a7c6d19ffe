package group

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
)

// ThinPool holds the known facts about one thin pool of a group. Its sizes are promises: the
// virtual sizes of thin volumes, which take no room of the group.
type ThinPool struct {
	// size of the pool's data, and foreign, the sizes promised to volumes of others, in bytes.
	size, foreign int64
	// Active by itself: a pool can also be live only through one of its volumes.
	Active bool
	// managed says that Berth made the pool and keeps it as large as it is asked to be.
	managed bool
	// zeroing says that a block is zeroed before it is given to a volume.
	zeroing bool
	// health is LVM's word for a damage that the kernel does not know of.
	health string
	// Suspended says that a command died while it changed the pool, and left it suspended. A
	// process that writes to a volume of the pool waits until it is resumed.
	Suspended bool
	// Kernel is the last status from the kernel. Told is the status when a change was signalled
	// last.
	Kernel, Told ThinStatus
	// Refused is empty, or says why the pool could not be activated. It stays until the pool is
	// activated or others change the group, as a repair does.
	Refused string
	// Tries to activate a pool that is refused.
	Tries Tries
}

// ThinPools are the thin pools of a group by name.
type ThinPools map[string]*ThinPool

// Tell notes that the present status of the pools is about to be signalled.
func (t ThinPools) Tell() {
	for _, p := range t {
		p.Told = p.Kernel
	}
}

// Idle returns those of some pools that are not active by themselves.
func (t ThinPools) Idle(names []string) []string {
	return t.pick(names, func(p *ThinPool) bool { return !p.Active || p.Asleep() })
}

// Active returns those of some pools that LVM reports as active by themselves.
func (t ThinPools) Active(names []string) []string {
	return t.pick(names, func(p *ThinPool) bool { return p.Active })
}

// Inactive returns those of some pools that LVM does not report as active by themselves.
func (t ThinPools) Inactive(names []string) []string {
	return t.pick(names, func(p *ThinPool) bool { return !p.Active })
}

func (t ThinPools) pick(names []string, wanted func(*ThinPool) bool) (picked []string) {
	for _, name := range names {
		if p := t[name]; p != nil && wanted(p) {
			picked = append(picked, name)
		}
	}
	return picked
}

// Ref returns the reference of a thin pool of the group, or of the group itself with an empty
// name.
func (g *Facts) Ref(thin string) provision.PoolRef {
	if thin == "" {
		return provision.PoolRef{Type: provision.LVM, Name: g.Name}
	}
	return provision.PoolRef{Type: provision.LVMThin, Name: g.Name + "/" + thin}
}

// free returns the free bytes. It is never stored, so it cannot drift from the facts that it
// follows from.
func (g *Facts) free(thin string) int64 {
	free := g.total - g.foreign
	if p := g.Pools[thin]; p != nil {
		free = p.size - p.foreign
	}
	for _, v := range g.Volumes {
		if v.Pool == thin {
			free -= v.size
		}
	}
	for _, s := range g.Snapshots {
		if s.Pool == thin {
			free -= s.size
		}
	}
	if thin == "" {
		for _, r := range g.Wiping {
			free -= r.size
		}
		free -= g.cows()
	}
	return free
}

// figures are the sizes of a thin pool, or of the group itself with an empty name.
func (g *Facts) figures(thin string) provision.Pool {
	out := provision.Pool{PoolRef: g.Ref(thin), Total: g.total, Foreign: g.foreign, Free: g.free(thin), Unit: g.unit}
	if thin == "" {
		// Cows are no volumes and go by themselves. Listed, each would take a place in the report
		// of the pool for as long as a copy takes.
		out.Foreign += g.cows()
	}
	if p := g.Pools[thin]; p != nil {
		out.Total, out.Foreign, out.Fill = p.size, p.foreign, p.Kernel.fill(p.size)
	}
	return out
}

// poolTrouble is empty, or says why nothing new may be placed in a thin pool, or in
// the group itself with an empty name.
func (g *Facts) poolTrouble(thin string, now time.Time) string {
	if t := g.Trouble(now); t != "" || thin == "" {
		return t
	}
	p, name := g.Pools[thin], g.Name+"/"+thin
	switch {
	case p == nil:
		return "the thin pool is gone"
	case p.health != "":
		return "LVM reports the thin pool as " + p.health
	case p.Suspended:
		return suspendedPool(name)
	case !p.zeroing:
		return "what deleted volumes held could be read from new ones, for the thin pool gives out blocks unzeroed: turn zeroing on (lvchange --zero y " + name + ")"
	case p.Refused != "":
		return p.Refused
	default:
		return p.Kernel.trouble(name)
	}
}

// PoolsOf returns the thin pools of some volumes; none of a group that is nil.
func (g *Facts) PoolsOf(ids ...string) (pools []string) {
	for _, id := range ids {
		if g == nil || g.Volumes[id] == nil || g.Pools[g.Volumes[id].Pool] == nil || slices.Contains(pools, g.Volumes[id].Pool) {
			continue
		}
		pools = append(pools, g.Volumes[id].Pool)
	}
	return pools
}

// Split takes a pool's reference apart: a volume group and, unless the pool is the
// group itself, a thin pool in it.
func Split(ref provision.PoolRef) (group, thin string) {
	group, thin, _ = strings.Cut(ref.Name, "/")
	return group, thin
}

// NoThinPool says that a group has no thin pool of a name.
func NoThinPool(name string) error {
	return fmt.Errorf("%w: no thin pool is named %s", provision.ErrPoolMissing, name)
}

// Asleep says that the kernel knows nothing of the pool, for it is not active.
func (p *ThinPool) Asleep() bool { return !p.Kernel.Live() && p.Kernel.Failure == "" }

// PartsOf returns the names of the logical volumes that a thin pool is made of.
func PartsOf(thin string) []string { return []string{thin + "_tdata", thin + "_tmeta"} }

func suspendedPool(name string) string {
	return "the thin pool is suspended, and writes to its volumes wait: resume it (lvchange --refresh " + name + ")"
}
