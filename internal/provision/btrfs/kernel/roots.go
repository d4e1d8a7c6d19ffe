package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// Root is a subvolume as the filesystem lists it.
type Root struct {
	Subvolume
	// Parent is the subvolume that it is in, Directory the inode of its directory there, and Name
	// its name in that. They are zero for a subvolume that was deleted and still takes room.
	Parent, Directory uint64
	Name              string
}

// The trees of a filesystem, and the items in them, that are read.
const (
	treeOfRoots  = 1
	treeOfQuotas = 8
	itemRoot     = 132
	itemPlace    = 144
	itemMember   = 246
	headLength   = 32
	uuidAt       = 247 // in itemRoot
	nameAt       = 18  // in itemPlace
)

// Roots lists all subvolumes but the topmost, by their ids.
func (f *Filesystem) Roots() (map[uint64]Root, error) {
	roots := map[uint64]Root{}
	err := f.search(treeOfRoots, itemRoot, itemPlace, func(id, offset uint64, kind uint32, item []byte) {
		if kind == itemRoot || kind == itemPlace { // the kernel returns those between the two as well
			roots[id] = roots[id].with(id, kind, offset, item)
		}
	})
	return roots, err
}

// Counted returns for which volumes each subvolume counts. A tenant chooses that when it makes one.
// Groups of higher levels are an administrator's.
func (f *Filesystem) Counted() (map[uint64][]uint64, error) {
	counted := map[uint64][]uint64{}
	err := f.search(treeOfQuotas, itemMember, itemMember, func(id, group uint64, kind uint32, _ []byte) {
		if kind == itemMember && id>>48 == 0 && group>>48 == 1 {
			counted[id] = append(counted[id], group-volumeLevel)
		}
	})
	return counted, err
}

// Members returns the subvolumes that count for the limit of a volume, of those that Counted returned.
func Members(counted map[uint64][]uint64, id uint64) (members []uint64) {
	for member, groups := range counted {
		if slices.Contains(groups, id) {
			members = append(members, member)
		}
	}
	return members
}

// search yields the items of a tree, of types from one to another.
func (f *Filesystem) search(tree uint64, from, to uint32, yield func(id, offset uint64, kind uint32, item []byte)) error {
	key := searchArgs{tree: tree, minID: firstFree, maxID: lastFree, maxOffset: unlimited, max: unlimited, minType: from, maxType: to}
	for {
		a := key
		a.items = 4096
		switch err := ioctl(f.top, read|write, doSearch, &a); {
		case errors.Is(err, unix.ENOENT): // there is no such tree
			return nil
		case err != nil:
			return fmt.Errorf("searching tree %d: %w", tree, err)
		case a.items == 0:
			return nil
		}
		found := a.found[:]
		for range a.items {
			id, offset := binary.NativeEndian.Uint64(found[8:]), binary.NativeEndian.Uint64(found[16:])
			kind, length := binary.NativeEndian.Uint32(found[24:]), binary.NativeEndian.Uint32(found[28:])
			if int(length) > len(found)-headLength {
				return fmt.Errorf("searching tree %d: the kernel's answer is cut off", tree)
			}
			yield(id, offset, kind, found[headLength:][:length])
			key.minID, key.minType, key.minOffset = id, kind, offset
			found = found[headLength+length:]
		}
		if key.minOffset++; key.minOffset == 0 {
			key.minType++
		}
	}
}

// with takes in an item of the list.
func (r Root) with(id uint64, kind uint32, offset uint64, item []byte) Root {
	r.ID = id
	switch {
	case kind == itemRoot && len(item) >= uuidAt+16:
		r.UUID = uuid([16]byte(item[uuidAt:]))
	case kind == itemPlace && len(item) >= nameAt:
		r.Parent, r.Directory, r.Name = offset, binary.LittleEndian.Uint64(item), string(item[nameAt:])
	}
	return r
}
