package device

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
)

// state holds the facts about all disks, by their names as pools.
type state struct {
	engine.Book[*disk]
	// listed is set once the kernel was asked. The lock of the Book guards it.
	listed bool
}

// apply takes in the kernel's descriptions of all disks, and returns whether anything is
// new.
func (s *state) apply(list []Disk) (changed bool) {
	byPool := map[string][]Disk{}
	for _, d := range list {
		if pool := poolName(d.Identity); pool != "" && d.Size >= minDisk {
			byPool[pool] = append(byPool[pool], d)
		}
	}
	s.Lock()
	defer s.Unlock()
	s.listed = true
	for pool, found := range byPool {
		slices.SortFunc(found, func(a, b Disk) int { return cmp.Compare(a.Name, b.Name) })
		changed = s.applyOne(pool, found) || changed
	}
	for pool, d := range s.Units() {
		switch {
		case byPool[pool] != nil || d.missing:
		case d.holds() != nil:
			d.missing, changed = true, true
		default:
			s.Drop(pool)
			changed = true
		}
	}
	return changed
}

// applyOne takes in the kernel's descriptions of the disks of one identity.
func (s *state) applyOne(pool string, found []Disk) (changed bool) {
	d := s.Units()[pool]
	if d == nil {
		d = &disk{pool: pool, Disk: found[0]}
		s.Put(pool, d)
		changed = true
	}
	var twins []string
	if len(found) > 1 {
		for _, f := range found {
			twins = append(twins, f.Name)
		}
	}
	changed = changed || d.missing || !d.equal(found[0]) || !slices.Equal(d.twins, twins)
	if d.missing || !d.same(found[0]) || !slices.Equal(d.twins, twins) {
		s.Touch(d)
		d.reading = nil // a reading of the disk that was here before is dropped
	}
	d.Disk, d.twins, d.missing = found[0], twins, false
	return changed
}

// seen says whether every disk was read, or could not be.
func (s *state) seen() bool {
	s.Lock()
	defer s.Unlock()
	for _, d := range s.Units() {
		if d.Read.IsZero() && d.unreadable == nil {
			return false
		}
	}
	return s.listed
}

// has says whether a disk is there that holds a volume.
func (s *state) has(pool string) (there bool) {
	s.With(pool, func(d *disk) { there = d != nil && !d.missing && (d.holds() != nil || d.changing) })
	return there
}

// pools returns all disks as callers see them. It leaves out a disk that was never read:
// a caller must not take it for a disk without a volume.
func (s *state) pools() (pools []provision.Pool) {
	for _, d := range s.All() {
		if d.Read.IsZero() {
			continue
		}
		p := d.report()
		for i, v := range p.Volumes {
			if _, err := s.holder(v.ID); errors.Is(err, provision.ErrConflict) {
				p.Volumes[i].Problem = provision.Problem(err)
			}
		}
		pools = append(pools, p)
	}
	return pools
}

// find returns the disk that holds a volume, as it is known now. It returns ErrConflict for
// two disks with one volume: they are copies, and nothing is done with either.
func (s *state) find(id string) (found disk, err error) {
	s.Lock()
	defer s.Unlock()
	return s.holder(id)
}

// holder is find for a caller that has the lock of the Book.
func (s *state) holder(id string) (found disk, err error) {
	for _, name := range slices.Sorted(maps.Keys(s.Units())) {
		d := s.Units()[name]
		if r := d.holds(); r == nil || r.id != id {
			continue
		}
		if found.pool != "" {
			return disk{}, fmt.Errorf("%w: volume %s is on disks %s and %s: one is a copy, remove it", provision.ErrConflict, id, found.pool, name)
		}
		found = *d
	}
	if found.pool == "" {
		return disk{}, fmt.Errorf("%w: %s", provision.ErrNotFound, id)
	}
	return found, nil
}

// written notes that the disk of a kernel's name may have changed, and returns whether it is known.
func (s *state) written(name string) bool {
	for _, d := range s.All() {
		if d.Name == name && !d.missing {
			s.Touch(d)
			return true
		}
	}
	return false
}

// toWipe begins an attempt for each disk that is to be wiped and has none, and returns the
// attempts by pool.
func (s *state) toWipe() map[string]*attempt {
	begun := map[string]*attempt{}
	for name, d := range s.All() {
		due := !d.Read.IsZero() && d.content.kind == ours && d.content.problem == "" && d.content.record.status == wiping
		if due && d.trouble() == "" && d.wipe == nil {
			d.wipe = &attempt{}
			begun[name] = d.wipe
		}
	}
	return begun
}

// retryWipes lets wipings be tried again that failed for one of these reasons, or, if none is
// given, for any reason.
func (s *state) retryWipes(reasons ...error) (found bool) {
	for _, d := range s.All() {
		if d.wipe == nil || d.wipe.failed == nil {
			continue
		}
		failed := d.wipe.failed
		if len(reasons) == 0 || slices.ContainsFunc(reasons, func(r error) bool { return errors.Is(failed, r) }) {
			d.wipe, found = nil, true
		}
	}
	return found
}

// trouble returns which of the disks for which of is true cannot be read.
func (s *state) trouble(of func(*disk) bool) error {
	var errs []error
	for name, d := range s.All() {
		if d.unreadable != nil && of(d) {
			errs = append(errs, fmt.Errorf("%w: disk %s (%s): %w", provision.ErrUnavailable, d.Name, name, d.unreadable))
		}
	}
	return errors.Join(errs...)
}
