package group

import (
	"cmp"
	"fmt"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Step is one LVM process that changes a group.
type Step struct {
	Command run.Command
	// Thin is the thin pool that the step is about; empty for a step about thick volumes.
	Thin string
	// Makes is the logical volume that is made, with a device; empty if none is.
	Makes string
	// Writes is how often LVM writes the group's metadata for it; 0 means once.
	Writes uint64
	// Learn puts the effect of the step into the facts, which may include it already.
	Learn func(g *Facts)
}

// Planner plans the changes of a group. It knows the time, and has no effect. Its plans return
// the next step, nil if none is left, or why the step cannot be taken.
type Planner struct {
	Tool
	Now time.Time
}

// makes is how often LVM writes a group's metadata to make or remove a volume or a
// snapshot: for a thin one before and after the message to the pool, so that neither is
// lost.
func makes(thin string) uint64 {
	if thin != "" {
		return 2
	}
	return 1
}

// Create makes a volume: blank, or as a copy that may be too small yet, or is to be filled.
func (p Planner) Create(g *Facts, r provision.CreateRequest) (*Step, error) {
	size, there, err := p.Creatable(g, r)
	if there || err != nil {
		return nil, err
	}
	_, thin := Split(r.Pool)
	if r.Source == (provision.Source{}) {
		v := &volume{carved: carved{Pool: thin, size: size, Active: true, Wipe: r.Wipe}, inline: r.Inline, claim: provision.ClaimOf(r.Labels)}
		return p.creation(r, thin, p.createCommand(r, size), v), nil
	}
	if r.Source.Volume != "" && thin == "" {
		if err := g.Kept(r.ID); err != nil {
			return nil, err
		}
	}
	from := *g.Find(SourceID(r.Source)) // Creatable has seen that it can be copied
	v := &volume{carved: carved{Pool: thin, size: size, filesystem: from.filesystem, Active: true, Wipe: r.Wipe}, inline: r.Inline, source: r.Source, claim: provision.ClaimOf(r.Labels)}
	v.copying, v.Growing = thin == "", thin != "" && from.size < size
	return p.creation(r, thin, p.copyCommand(r, from, size), v), nil
}

func (p Planner) creation(r provision.CreateRequest, thin string, c run.Command, v *volume) *Step {
	return &Step{Command: c, Thin: thin, Makes: r.ID, Writes: makes(thin), Learn: func(g *Facts) {
		g.Volumes[r.ID] = v
		if v.copying {
			g.pendingOf(r.ID).Due = p.Now
		}
	}}
}

// Grow makes a thin copy as large as it must be. A thin copy is a writable thin snapshot of its
// source. One that is to be larger is extended by a second process. The first one records what
// size the copy must have, so a smaller copy was used by no pod yet, and is extended. Its size
// was admitted then, and has been counted since. Nothing is to be done for another volume.
func (p Planner) Grow(g *Facts, id string) (*Step, error) {
	v, err := find(g, id)
	if err != nil || !v.Growing {
		return nil, err
	}
	if err := g.Usable(v.Pool, p.Now); err != nil {
		return nil, err
	}
	return &Step{Command: p.extendCommand(g.Name+"/"+id, v.size), Thin: v.Pool, Learn: func(g *Facts) {
		if v := g.Volumes[id]; v != nil {
			v.Growing = false
		}
	}}, nil
}

// Expand makes a volume larger.
func (p Planner) Expand(g *Facts, r provision.ExpandRequest) (*Step, error) {
	v, err := find(g, r.ID)
	if err != nil {
		return nil, err
	}
	size := g.round(r.Size)
	if size <= v.size {
		return p.Grow(g, r.ID)
	}
	if by := g.needed(r.ID); by != "" || g.Pending[r.ID] != nil {
		return nil, fmt.Errorf("%w: volume %s can grow once %s is copied", provision.ErrUnavailable, r.ID, cmp.Or(by, "it"))
	}
	if err := cmp.Or(g.Usable(v.Pool, p.Now), r.Limits.Admit(g.figures(v.Pool), size-v.size)); err != nil {
		return nil, err
	}
	return &Step{Command: p.extendCommand(g.Name+"/"+r.ID, size), Thin: v.Pool, Learn: func(g *Facts) {
		if v := g.Volumes[r.ID]; v != nil {
			v.size, v.Growing = size, false
		}
	}}, nil
}

// Record writes down, with a volume, that it is formatted.
func (p Planner) Record(g *Facts, id, filesystem string) (*Step, error) {
	v, err := find(g, id)
	switch {
	case err != nil:
		return nil, err
	case v.filesystem == filesystem:
		return nil, nil
	case v.filesystem != "":
		return nil, fmt.Errorf("%w: volume %s is recorded as %s", provision.ErrConflict, id, v.filesystem)
	}
	return &Step{Command: p.command("lvchange", "--yes", "--addtag", tagFS+filesystem, g.Name+"/"+id), Learn: func(g *Facts) {
		if v := g.Volumes[id]; v != nil {
			v.filesystem = filesystem
		}
	}}, nil
}

// Remove removes a volume or a snapshot of a thin pool, or of the group if there is none.
func (p Planner) Remove(g *Facts, thin, id string, fresh bool) (*Step, error) {
	if there, err := deletable(g, id, fresh); !there || err != nil {
		return nil, err
	}
	return p.Removal(g, thin, id), nil
}

// Removal removes volumes and snapshots of one pool. LVM writes the group's metadata for each
// thin one, and once for all thick ones.
func (p Planner) Removal(g *Facts, thin string, ids ...string) *Step {
	s := &Step{Command: p.removeCommand(g, ids...), Thin: thin, Writes: makes(thin), Learn: func(g *Facts) {
		for _, id := range ids {
			g.discard(id)
		}
	}}
	if thin != "" {
		s.Writes *= uint64(len(ids))
	}
	return s
}

// Mark turns a volume or a snapshot into a remnant, which is to be wiped.
func (p Planner) Mark(g *Facts, id string, fresh bool) (*Step, error) {
	if there, err := deletable(g, id, fresh); !there || err != nil {
		return nil, err
	}
	return &Step{Command: p.markCommand(g, id, *g.Find(id)), Learn: func(g *Facts) { g.bury(id) }}, nil
}

// RemoveWiped removes a remnant that is wiped.
func (p Planner) RemoveWiped(g *Facts, id string) (*Step, error) {
	if there, err := Wipeable(g, id); !there || err != nil {
		return nil, err
	}
	return &Step{Command: p.removeCommand(g, id), Learn: func(g *Facts) { delete(g.Wiping, id) }}, nil
}

// Wiped records how many bytes of a remnant need not be wiped again.
func (p Planner) Wiped(g *Facts, id string, done int64) (*Step, error) {
	there, err := Wipeable(g, id)
	if !there || err != nil || g.Wiping[id].Wiped == done {
		return nil, err
	}
	return &Step{Command: p.wipedCommand(g.Name, id, g.Wiping[id].Wiped, done), Learn: func(g *Facts) {
		if r := g.Wiping[id]; r != nil {
			r.Wiped, r.doubted = done, false
		}
	}}, nil
}
