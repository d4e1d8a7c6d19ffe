package group

import (
	"fmt"

	"berth.dev/berth/internal/provision"
)

// besides returns how many bytes a copy of a volume needs in addition to its own size: those of
// its copy-on-write snapshot.
func (g *Facts) besides(id, of string) int64 {
	if v := g.Volumes[of]; v != nil && v.Pool == "" && g.Pending[id] == nil {
		return g.round(cowSize(v.size))
	}
	return 0
}

// Kept returns nil if a copy-on-write snapshot keeps the data for a copy.
func (h *holdings) Kept(id string) error {
	if left := h.Pending[id]; left == nil || left.Cow == nil || left.Cow.broken {
		return fmt.Errorf("%w: logical volume %s/%s, which held the data to copy to %s, is gone", provision.ErrUnavailable, h.Name, cowName(id), id)
	}
	return nil
}

// settled forgets about a copy if nothing is left to do about it.
func (h *holdings) settled(id string) {
	if left, c := h.Pending[id], h.Find(id); left != nil && left.Cow == nil && (c == nil || !c.copying) {
		delete(h.Pending, id)
	}
}

// FillsFrom returns the logical volume that a copy is filled from, and how many bytes of it.
func (h *holdings) FillsFrom(id string) (lv string, size int64) {
	if source := h.filledFrom(id); source != "" {
		if s := h.Snapshots[source]; s != nil {
			return source, s.size
		}
		return source, 0
	}
	if s := h.Snapshots[id]; s != nil {
		return cowName(id), s.size
	}
	if left := h.Pending[id]; left != nil && left.Cow != nil && h.Volumes[left.Cow.of] != nil {
		return cowName(id), h.Volumes[left.Cow.of].size // which does not grow meanwhile
	}
	return cowName(id), 0
}

// Cow takes a copy-on-write snapshot of a volume for a copy.
func (p Planner) Cow(g *Facts, id, of string) (*Step, error) {
	name := cowName(id)
	switch {
	case g.Pending[id] != nil, g.Wiping[name] != nil:
		// The old cow keeps the data of a moment before the present request.
		return nil, fmt.Errorf("%w: logical volume %s/%s is left of an attempt before, and is being removed", provision.ErrUnavailable, g.Name, name)
	case g.Others[name]:
		return nil, g.notOurs(name)
	}
	size, how := g.round(cowSize(g.Volumes[of].size)), g.Volumes[of].Wipe
	return &Step{Command: p.cowCommand(g.Name, id, of, size, how), Makes: cowName(id), Writes: cowMakes, Learn: func(g *Facts) {
		left := g.pendingOf(id)
		left.Cow, left.Due = &cow{of: of, size: size, wipe: how}, p.Now
	}}, nil
}

// Whole records that a copy is filled.
func (p Planner) Whole(g *Facts, id string) (*Step, error) {
	switch {
	case g == nil || g.Find(id) == nil || !g.Find(id).copying:
		return nil, nil
	case g.Missing:
		return nil, fmt.Errorf("%w: volume group %s is missing", provision.ErrPoolMissing, g.Name)
	}
	return &Step{Command: p.wholeCommand(g.Name, id), Learn: func(g *Facts) {
		if c, left := g.Find(id), g.Pending[id]; c != nil && left != nil {
			c.copying, c.readOnly, left.Tries = false, g.Snapshots[id] != nil, Tries{Due: left.Due}
			g.settled(id)
		}
	}}, nil
}

// Drop gives up a copy-on-write snapshot. The logical volume below it holds old data of the
// volume, and is wiped as the volume would be.
func (p Planner) Drop(g *Facts, id string) (*Step, error) {
	switch {
	case g == nil || g.Next(id) != TodoDrop:
		return nil, nil
	case g.Missing:
		return nil, fmt.Errorf("%w: volume group %s is missing", provision.ErrPoolMissing, g.Name)
	}
	given := *g.Pending[id].Cow
	s := &Step{Command: p.removeCommand(g, cowName(id)), Writes: cowMakes}
	if given.wipe != provision.WipeNone {
		s.Command, s.Writes = p.splitCommand(g.Name, id), 1
	}
	s.Learn = func(g *Facts) {
		left := g.Pending[id]
		if left == nil || left.Cow == nil {
			return
		}
		if given.wipe != provision.WipeNone {
			g.Wiping[cowName(id)] = &Remnant{size: left.Cow.size, How: left.Cow.wipe}
		}
		left.Cow = nil
		g.settled(id)
	}
	return s, nil
}
