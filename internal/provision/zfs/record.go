package zfs

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
)

// The user properties that Berth keeps with a volume or a snapshot. Properties are
// inherited, by volumes from the datasets above and by snapshots from their volume:
// those that say what something is repeat its name, which nothing else bears, and the
// others are always set, if only to none.
const (
	propPool       = "berth.dev:pool" // on a filesystem that is a pool: its own name
	propVolume     = "berth.dev:volume"
	propFilesystem = "berth.dev:fs"
	propSource     = "berth.dev:source" // "snapshot/" or "volume/" and the id
	propInline     = "berth.dev:inline" // pod's UID / name in the pod
	propSnapshot   = "berth.dev:snapshot"
	propTaken      = "berth.dev:taken" // when a snapshot was, in seconds since 1970
	propLabel      = "berth.dev:label:"
)

// propCompression is ZFS's own. Of those it has, volmode must not be set on a zvol:
// ZFS 2.1 takes its device away and makes it anew whenever that is done, whatever the value,
// and one that somebody changes at that moment is left without.
const propCompression = "compression"

// none is the value of a property that says nothing.
const none = "none"

const (
	fromSnapshot = "snapshot/"
	fromVolume   = "volume/"
)

// record is what the properties say of a volume.
type record struct {
	filesystem string
	inline     provision.Inline
	source     provision.Source
}

// properties are a new volume's, as options of a command in a stable order.
func properties(r provision.CreateRequest, filesystem string) []string {
	values := map[string]string{
		propVolume:     r.ID,
		propFilesystem: orNone(filesystem),
		propInline:     none,
		propSource:     none,
		propSnapshot:   none,
	}
	if r.Inline != (provision.Inline{}) {
		values[propInline] = r.Inline.PodUID + "/" + r.Inline.Name
	}
	switch {
	case r.Source.Snapshot != "":
		values[propSource] = fromSnapshot + r.Source.Snapshot
	case r.Source.Volume != "":
		values[propSource] = fromVolume + r.Source.Volume
	}
	for k, v := range r.Labels {
		values[propLabel+k] = v
	}
	if r.ZFS.Compression != "" {
		values[propCompression] = r.ZFS.Compression
	}
	return options(values)
}

// snapshotProperties are a new snapshot's. What it says of its volume it inherits,
// but for the filesystem, which may change.
func snapshotProperties(id string, d *dataset, taken time.Time) []string {
	values := map[string]string{propSnapshot: id, propFilesystem: orNone(d.filesystem), propTaken: text(taken.Unix())}
	if d.files() {
		values[propSize] = text(d.size)
	}
	return options(values)
}

// takenAt is when a snapshot was taken: what is recorded, or when ZFS made it. Berth asks for
// it a moment before, and that is what it answered then.
func takenAt(r row) time.Time {
	recorded, err := strconv.ParseInt(r.taken, 10, 64)
	if err != nil {
		recorded = r.creation
	}
	return time.Unix(recorded, 0).UTC()
}

func options(values map[string]string) []string {
	var args []string
	for _, k := range slices.Sorted(maps.Keys(values)) {
		args = append(args, "-o", k+"="+values[k])
	}
	return args
}

func orNone(value string) string {
	if value == "" {
		return none
	}
	return value
}

// parseRecord reads what properties says; "-" stands for one that is not set.
func parseRecord(r row) record {
	var rec record
	rec.filesystem = set(r.filesystem)
	if owner := set(r.inline); owner != "" {
		rec.inline.PodUID, rec.inline.Name, _ = strings.Cut(owner, "/")
	}
	if id, ok := strings.CutPrefix(r.source, fromSnapshot); ok {
		rec.source.Snapshot = id
	}
	if id, ok := strings.CutPrefix(r.source, fromVolume); ok {
		rec.source.Volume = id
	}
	return rec
}

func set(value string) string {
	if value == none || value == "-" {
		return ""
	}
	return value
}
