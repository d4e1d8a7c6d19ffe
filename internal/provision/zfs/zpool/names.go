package zpool

import (
	"fmt"
	"regexp"
	"strings"

	"berth.dev/berth/internal/provision"
)

// The filesystems in a pool whose content is Berth's by its place. Neither name can be
// a volume's.
const (
	// liveArea holds the volumes.
	liveArea = "berth-volumes"
	// trashArea holds deleted volumes that still have snapshots.
	trashArea = "berth-trash"
	// copiesArea holds what volumes that are copies keep beside their heads.
	copiesArea = "berth-copies"
)

// basePrefix begins the names of the snapshots that clones of volumes are made from. It cannot
// begin a snapshot's id. Others may name theirs so, too: a base bears its name in a record.
const basePrefix = "berth-base-"

// maxParent leaves room, of the 255 bytes that ZFS allows for a name, for a volume and the
// base of a clone of it.
const maxParent = 100

// deviceDir is where the links to zvols are.
const deviceDir = "/dev/zvol/"

var datasetName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)*$`)

// DatasetOf returns the name of a pool's dataset.
func DatasetOf(pool provision.PoolRef) (string, error) {
	name, ok := strings.CutPrefix(pool.Name, provision.ZFSPrefix)
	if !ok || pool.Type != provision.ZFS || !datasetName.MatchString(name) {
		return "", fmt.Errorf("%w: no pool of type %s is named %s", provision.ErrPoolMissing, pool.Type, pool.Name)
	}
	if len(name) > maxParent {
		return "", fmt.Errorf("%w: the name of pool %s is longer than %d bytes: the bases of its clones could not be named", provision.ErrInvalid, pool.Name, maxParent)
	}
	return name, nil
}

// PoolRef returns the pool of a dataset.
func PoolRef(dataset string) provision.PoolRef {
	return provision.PoolRef{Type: provision.ZFS, Name: provision.ZFSPrefix + dataset}
}

// Of returns the name of a dataset's zpool.
func Of(dataset string) string {
	name, _, _ := strings.Cut(dataset, "/")
	return name
}

// cutLast takes the last part off a dataset's name.
func cutLast(dataset string) (parent, last string) {
	i := strings.LastIndexByte(dataset, '/')
	if i < 0 {
		return "", dataset
	}
	return dataset[:i], dataset[i+1:]
}

// area is the part of a pool that a volume is in.
type area string

const (
	elsewhere area = ""
	live      area = liveArea
	trash     area = trashArea
	copies    area = copiesArea
)

// locate splits the name of a dataset into the pool's dataset, the area in the pool, and
// the id of the volume that the dataset would be.
func locate(dataset string) (parent string, where area, id string) {
	parent, last := cutLast(dataset)
	switch above, name := cutLast(parent); area(name) {
	case live:
		return above, live, last
	case trash:
		id, _, _ = strings.Cut(last, ".") // several of one id may be in the trash
		return above, trash, id
	}
	if pool, id, _, ok := copyPart(dataset); ok {
		return pool, copies, id
	}
	return parent, elsewhere, last
}

// IDOf returns the id of the volume that a dataset would be.
func IDOf(dataset string) string {
	_, _, id := locate(dataset)
	return id
}

// LiveName returns the name of the dataset of a volume in a pool.
func LiveName(parent, id string) string { return parent + "/" + liveArea + "/" + id }

// cutOrigin returns the name of a snapshot without the dataset's, if it is of that dataset.
func cutOrigin(origin, dataset string) (at string, ok bool) {
	return strings.CutPrefix(origin, dataset+"@")
}
