package zpool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"berth.dev/berth/internal/provision"
)

// Create plans the steps that make a volume.
func (p Planner) Create(z *Facts, r provision.CreateRequest, parent string) ([]Step, error) {
	if z == nil {
		return nil, fmt.Errorf("%w: %s", provision.ErrPoolMissing, r.Pool.Name)
	}
	size := provision.RoundUp(r.Size, Unit)
	if name, d := z.Volume(r.ID); d != nil {
		return p.planWhole(z, r, size, name, d)
	}
	if err := z.Usable(p.Now); err != nil {
		return nil, err
	}
	if _, ok := z.Parents[parent]; !ok {
		return nil, fmt.Errorf("%w: %s", provision.ErrPoolMissing, r.Pool.Name)
	}
	name := LiveName(parent, r.ID)
	if z.Others[name] {
		return nil, ConflictTaken(name)
	}
	if c := z.Copies[CopyName(parent, r.ID)]; c != nil || len(CopiesIn(z).ending(parent, r.ID)) > 0 {
		return nil, fmt.Errorf("%w: %s has points of a copy without its volume: they go soon if the volume was deleted, and wait if others moved it away",
			provision.ErrUnavailable, CopyName(parent, r.ID))
	}
	makeIt, needs, err := p.planContent(z, r, size, name)
	if err != nil {
		return nil, err
	}
	if err := z.admit(parent, r.Limits, needs); err != nil {
		return nil, err
	}
	last := &makeIt[len(makeIt)-1]
	last.Takes, last.Parent, last.Makes = needs, parent, true
	return slices.Concat(p.areaSteps(z, parent, live), p.discardSteps(z, r.ID), makeIt), nil
}

// planWhole plans the steps that complete a volume that is there: the process that made it, or
// the machine, may have ended before its room was reserved.
func (p Planner) planWhole(z *Facts, r provision.CreateRequest, size int64, name string, d *Dataset) ([]Step, error) {
	if err := d.matches(r, size); d.reserved || err != nil {
		return nil, err
	}
	if err := cmp.Or(z.Usable(p.Now), z.admit(d.Parent, r.Limits, size-d.size)); err != nil {
		return nil, err
	}
	command := p.reserveCommand(name, size)
	if d.Files() {
		command = p.growDatasetCommand(name, size)
	}
	return []Step{{
		Command: command, Takes: size - d.size, Parent: d.Parent,
		Learn: func(z *Facts) { d := z.Datasets[name]; d.size, d.quota, d.reserved = size, size, true },
	}}, nil
}

// UndoCreate destroys a volume that this very change began to make, and that has no room: if
// ZFS has no room for a zvol, it leaves the zvol if udev looks at it. A volume that holds anything
// of its own stays, no matter which process made it.
func (p Planner) UndoCreate(z *Facts, r provision.CreateRequest) []Step {
	name, d := z.Volume(r.ID)
	if d == nil || d.reserved || len(d.snapshots) > 0 {
		return nil
	}
	if d.Filesystem != "" && r.Source == (provision.Source{}) {
		return nil // it was formatted, and not by this change
	}
	destroy := p.destroyStep(z, name)
	destroy.Subject.empty = true
	return []Step{destroy}
}

// Unfinished returns the datasets that a crash left of a volume.
func (z *Facts) Unfinished(id string) (names []string) {
	for name, d := range z.Datasets {
		if d.unfinished && d.ID == id {
			names = append(names, name)
		}
	}
	return names
}

// discardSteps destroy the datasets that a crash left of a volume. They hold nothing, and are of
// use only to a caller that knows the volume's id.
func (p Planner) discardSteps(z *Facts, id string) (steps []Step) {
	if z == nil {
		return nil
	}
	for _, name := range z.Unfinished(id) {
		steps = append(steps, p.destroyStep(z, name))
	}
	return steps
}

// matches returns ErrConflict unless a volume is as a request asks for. A volume without its
// room may not have its size yet.
func (d *Dataset) matches(r provision.CreateRequest, size int64) error {
	if PoolRef(d.Parent) != r.Pool {
		return ConflictElsewhere(r.ID, d)
	}
	if d.reserved && d.size != size || d.size > size || d.inline != r.Inline || d.source != r.Source || d.filesystemKind() != r.Tree {
		return fmt.Errorf("%w: volume %s exists as %s with %d bytes for %+v from %+v, not as %s with %d for %+v from %+v", provision.ErrConflict,
			r.ID, noun(d.filesystemKind()), d.size, d.inline, d.source, noun(r.Tree), size, r.Inline, r.Source)
	}
	return nil
}

// ConflictTaken says that a dataset of others has the place and the name of a volume.
func ConflictTaken(name string) error {
	return fmt.Errorf("%w: dataset %s exists and is not Berth's: rename or destroy it", provision.ErrConflict, name)
}

// ConflictElsewhere says that a volume exists in another pool than a request names.
func ConflictElsewhere(id string, d *Dataset) error {
	return fmt.Errorf("%w: volume %s exists in pool %s", provision.ErrConflict, id, PoolRef(d.Parent).Name)
}

// NoRoom classifies a refusal of ZFS to make something of a size. It is ErrNoSpace if
// there is less room than ZFS may need for that on the worst arrangement of disks.
func NoRoom(size int64) func(*Facts, error) error {
	return func(z *Facts, failure error) error {
		if z.available < 2*size && !errors.Is(failure, provision.ErrInUse) {
			return fmt.Errorf("%w: zpool %s has %d bytes available: %w", provision.ErrNoSpace, z.Name, z.available, failure)
		}
		return failure
	}
}
