package zpool

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
)

// The user properties that Berth keeps with a volume or a snapshot. Volumes inherit
// properties from the datasets above, and snapshots from their volume. So a property that
// identifies an object repeats the object's name, which no other object bears. Berth always
// sets the other properties, if only to none.
const (
	PropPool       = "berth.dev:pool" // on a filesystem that is a pool: its own name
	PropVolume     = "berth.dev:volume"
	propFilesystem = "berth.dev:fs"
	propSource     = "berth.dev:source" // "snapshot/" or "volume/" and the id
	propInline     = "berth.dev:inline" // pod's UID / name in the pod
	PropSnapshot   = "berth.dev:snapshot"
	propTaken      = "berth.dev:taken" // when a snapshot was, in seconds since 1970
	propLabel      = "berth.dev:label:"
)

// propCompression is a property of ZFS's own. Another of these, volmode, must not be set on a
// zvol: whatever the value, ZFS 2.1 then takes the device away and makes it anew. A zvol that
// another process changes at that moment is left without a device.
const propCompression = "compression"

// none is the value of a property that says nothing.
const none = "none"

const (
	fromSnapshot = "snapshot/"
	fromVolume   = "volume/"
)

// record holds the facts about a volume that its properties record.
type record struct {
	Filesystem string
	inline     provision.Inline
	source     provision.Source
	claim      string
}

// properties returns a new volume's properties as options of a command, in a stable order.
func properties(r provision.CreateRequest, filesystem string) []string {
	values := map[string]string{
		PropVolume:     r.ID,
		propFilesystem: orNone(filesystem),
		propInline:     none,
		propSource:     none,
		PropSnapshot:   none,
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
	if r.Tuning.Compression != "" {
		values[propCompression] = r.Tuning.Compression
	}
	return options(values)
}

// snapshotProperties returns a new snapshot's properties. A snapshot inherits those about its
// volume, except for the filesystem, which may change.
func snapshotProperties(name string, d *Dataset, taken time.Time) []string {
	values := map[string]string{PropSnapshot: name, propFilesystem: orNone(d.Filesystem), propTaken: text(taken.Unix())}
	if d.Files() {
		values[propSize] = text(d.size)
	}
	return options(values)
}

// takenAt returns when a snapshot was taken: the recorded time, else the time when ZFS made it.
// Berth records the time a moment before ZFS makes the snapshot, and answers with that time.
func takenAt(r Row) time.Time {
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

// parseRecord reads a volume's record from its properties; "-" stands for one that is not set.
func parseRecord(r Row) record {
	var rec record
	rec.claim = provision.ClaimOf(map[string]string{provision.LabelNamespace: set(r.namespace), provision.LabelClaim: set(r.claim)})
	rec.Filesystem = set(r.filesystem)
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
