package btrfs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/replica"
)

// The data of a copy is in the directory of its volume: each point, branch and stream in a numbered
// place, which has a record of its own and a subvolume as volumes have. A head that is made anew begins
// in nextPlace.
const (
	placesDir = "/points"
	nextPlace = "next"
)

// held is what a copy of a replicated volume holds. nil stands for a volume that is no copy.
type held struct {
	replica.Record
	// damage says why the record cannot be read.
	damage error
	// places by their numbers. nextPlace has number 0.
	places map[uint64]*entry
}

// placeDir returns the directory of a place, by the directory of its volume.
func placeDir(volume string, place uint64) string {
	if place == 0 {
		return volume + "/" + nextPlace
	}
	return volume + placesDir + "/" + strconv.FormatUint(place, 10)
}

// readHeld reads what the copy in the directory of a volume holds; nil if the volume is no copy.
func (r readings) readHeld(dir string) (*held, error) {
	text, err := r.Copy(dir)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	h := &held{places: map[uint64]*entry{}}
	h.Record, h.damage = replica.Decode(text)
	names, err := r.Names(dir + placesDir)
	if err != nil {
		return nil, err
	}
	numbers := map[uint64]string{0: nextPlace}
	for _, name := range names {
		if n, err := strconv.ParseUint(name, 10, 64); err == nil && n > 0 && strconv.FormatUint(n, 10) == name {
			numbers[n] = name
		}
	}
	for number, name := range numbers {
		text, inode, err := r.Read(placeDir(dir, number))
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return nil, err
		}
		e := &entry{}
		e.record, _ = parse(text, name)
		r.complete(e, inode)
		h.places[number] = e
	}
	return h, nil
}

// problem says why the volume must not be mounted.
func (h *held) problem(other string) string {
	if h.damage != nil {
		return provision.Problem(h.damage)
	}
	if why := h.Problem(); why != "" {
		return why
	}
	return other
}

// pins says how much of which subvolumes the places keep, at most.
func (h *held) pins() map[uint64]int64 {
	if h == nil {
		return nil
	}
	all := map[uint64]int64{}
	for _, place := range h.places {
		for id, bytes := range place.Pins {
			all[id] += bytes
		}
	}
	return all
}

// receives returns how many bytes a stream that is received, or was received half, may take beside
// the volume of a size.
func (h *held) receives(size int64) int64 {
	if h == nil || h.Receiving == nil {
		return 0
	}
	return size
}

// numbers of the places that there are.
func (h *held) numbers() []uint64 { return slices.Sorted(maps.Keys(h.places)) }

// leftover says that the record names a place no more.
func (h *held) leftover(place uint64) bool {
	return h.damage == nil && (place == 0 || h.Leftover(place))
}

// leftovers are the copies that hold more than their records name, by their ids.
func (u *facts) leftovers() map[string]*entry {
	all := map[string]*entry{}
	for id, v := range u.volumes {
		if v.held == nil || v.held.damage != nil {
			continue
		}
		over := !v.held.Live && v.root.ID != 0
		for place := range v.held.places {
			over = over || v.held.leftover(place)
		}
		if over {
			all[id] = v
		}
	}
	return all
}

// limit bounds what the volume takes, with or without a head.
func (e *entry) limit(f Filesystem, bound int64) error {
	if e.root.ID == 0 {
		return f.Bound(e.Subvolume.ID, bound)
	}
	return f.Limit(e.Subvolume.ID, bound)
}

// sweep removes the places that the record of a copy does not name, and a head that does not count. The
// volume is in its area, and has that bound.
func (p *store) sweep(f Filesystem, id string, v *entry, bound int64) (failure error) {
	dir := volumesArea + "/" + id
	if v.held == nil {
		return nil
	}
	var gone []*entry
	dirs := []string{}
	for _, place := range v.held.numbers() {
		if v.held.leftover(place) {
			gone, dirs = append(gone, v.held.places[place]), append(dirs, placeDir(dir, place))
		}
	}
	if !v.held.Live && v.root.ID != 0 {
		if err := unused(f, v.root.ID, id, "/"+dir); err != nil {
			return err
		}
		gone = append(gone, v)
	}
	if len(gone) == 0 {
		return nil
	}
	// A subvolume whose limit is reached cannot be removed.
	if err := f.Bound(v.Subvolume.ID, 0); err != nil {
		return err
	}
	for _, e := range gone {
		for _, root := range append(slices.Clone(e.within), e.root) {
			if root.ID != 0 && failure == nil {
				failure = f.Destroy(root)
			}
		}
	}
	for _, dir := range dirs {
		if failure == nil {
			failure = f.Remove(dir)
		}
	}
	return errors.Join(failure, f.Bound(v.Subvolume.ID, bound))
}

// displace removes all places of a copy in the trash.
func displace(f Filesystem, id string, e *entry) error {
	if e.held == nil {
		return nil
	}
	if err := f.Bound(e.Subvolume.ID, 0); err != nil {
		return err
	}
	for _, place := range e.held.numbers() {
		at := e.held.places[place]
		for _, root := range append(slices.Clone(at.within), at.root) {
			if root.ID == 0 {
				continue
			}
			if err := f.Destroy(root); err != nil {
				return fmt.Errorf("subvolume %d: %w", root.ID, err)
			}
		}
		if err := f.Remove(placeDir(trashArea+"/"+id, place)); err != nil {
			return err
		}
	}
	err := f.Remove(trashArea + "/" + id + placesDir)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
