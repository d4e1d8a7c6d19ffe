package btrfs

import (
	"encoding/json"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/kernel"
)

// The directories of Berth in a filesystem. Each volume and each snapshot has a directory of its
// own in one of the areas, named by its id. The directory has the record, and contains the
// subvolume.
const (
	home          = ".berth/"
	volumesArea   = home + "volumes"
	snapshotsArea = home + "snapshots"
	// makingArea holds volumes and snapshots that Berth is making, and trashArea those that Berth
	// is deleting.
	makingArea = home + "making"
	trashArea  = home + "trash"
)

// record is what is kept beside the data of a volume or snapshot.
type record struct {
	ID string
	// Subvolume that has the data. Nothing else is used in its place.
	Subvolume kernel.Subvolume
	Size      int64
	// Filesystem is set once a volume may hold data.
	Filesystem string            `json:",omitempty"`
	Inline     provision.Inline  `json:",omitzero"`
	Source     provision.Source  `json:",omitzero"`
	Labels     map[string]string `json:",omitempty"`
	// Volume that a snapshot is of, and when it was taken.
	Volume string    `json:",omitempty"`
	Taken  time.Time `json:",omitzero"`
	// Pins says how many bytes, at most, of what other subvolumes wrote this one keeps.
	Pins map[uint64]int64 `json:",omitempty"`
}

// parse reads the record in the directory of a name; false if it is not the record of that name.
func parse(text []byte, name string) (r record, ok bool) {
	err := json.Unmarshal(text, &r)
	return r, err == nil && r.ID == name && r.Size > 0
}

func (r record) write(f Filesystem, dir string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return f.Record(dir, text)
}
