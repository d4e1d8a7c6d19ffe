package device

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"berth.dev/berth/internal/provision"
)

// state holds the facts about all disks, by their names as pools.
type state struct {
	mu    sync.Mutex
	disks map[string]*disk
	// listed is set once the kernel was asked.
	listed bool
}

// with runs f on a disk, nil if there is none, under the state's lock.
func (s *state) with(pool string, f func(*disk)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.disks[pool])
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disks == nil {
		s.disks = map[string]*disk{}
	}
	s.listed = true
	for pool, found := range byPool {
		slices.SortFunc(found, func(a, b Disk) int { return cmp.Compare(a.Name, b.Name) })
		changed = s.applyOne(pool, found) || changed
	}
	for pool, d := range s.disks {
		switch {
		case byPool[pool] != nil || d.missing:
		case d.holds() != nil:
			d.missing, changed = true, true
		default:
			delete(s.disks, pool)
			changed = true
		}
	}
	return changed
}

// applyOne takes in the kernel's descriptions of the disks of one identity.
func (s *state) applyOne(pool string, found []Disk) (changed bool) {
	d := s.disks[pool]
	if d == nil {
		d = &disk{pool: pool, stale: true, Disk: found[0]}
		s.disks[pool] = d
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
		d.stale, d.reading = true, nil // a reading of the disk that was here before is dropped
	}
	d.Disk, d.twins, d.missing = found[0], twins, false
	return changed
}

// seen says whether every disk was read, or could not be.
func (s *state) seen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.disks {
		if !d.read && d.unreadable == nil {
			return false
		}
	}
	return s.listed
}

// has says whether a disk is there that holds a volume.
func (s *state) has(pool string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.disks[pool]
	return d != nil && !d.missing && (d.holds() != nil || d.changing)
}

// pools returns all disks as callers see them. It leaves out a disk that was never read:
// a caller must not take it for a disk without a volume.
func (s *state) pools() []provision.Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pools []provision.Pool
	for _, name := range slices.Sorted(maps.Keys(s.disks)) {
		if d := s.disks[name]; d.read {
			pools = append(pools, d.report())
		}
	}
	for _, p := range pools {
		for i, v := range p.Volumes {
			if _, err := s.holder(v.ID); errors.Is(err, provision.ErrConflict) {
				p.Volumes[i].Problem = provision.Problem(err)
			}
		}
	}
	return pools
}

// find returns the disk that holds a volume, as it is known now. It returns ErrConflict for
// two disks with one volume: they are copies, and nothing is done with either.
func (s *state) find(id string) (found disk, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holder(id)
}

// holder is find for a caller that holds the state's lock.
func (s *state) holder(id string) (found disk, err error) {
	for _, name := range slices.Sorted(maps.Keys(s.disks)) {
		d := s.disks[name]
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

// known returns a disk by the kernel's name for it.
func (s *state) known(name string) *disk {
	for _, d := range s.disks {
		if d.Name == name && !d.missing {
			return d
		}
	}
	return nil
}

// written notes that a disk may have changed, and returns whether it is known.
func (s *state) written(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.known(name)
	if d != nil {
		d.stale = true
	}
	return d != nil
}

func (s *state) staleAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.disks {
		d.stale = true
	}
}

// toWipe begins an attempt for each disk that is to be wiped and has none, and returns the
// attempts by pool.
func (s *state) toWipe() map[string]*attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	begun := map[string]*attempt{}
	for name, d := range s.disks {
		due := d.read && d.content.kind == ours && d.content.problem == "" && d.content.record.status == wiping
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
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.disks {
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
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.disks)) {
		if d := s.disks[name]; d.unreadable != nil && of(d) {
			errs = append(errs, fmt.Errorf("%w: disk %s (%s): %w", provision.ErrUnavailable, d.Name, name, d.unreadable))
		}
	}
	return errors.Join(errs...)
}
