package device

import (
	"fmt"
	"regexp"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/device/gpt"
)

// status is the stage of a volume's life. It only advances.
type status string

const (
	blank  = status("")
	ext4   = status(provision.Ext4)
	xfs    = status(provision.XFS)
	raw    = status(provision.Raw)
	wiping = status("wiping")
)

func (s status) rank() int {
	switch s {
	case blank:
		return 0
	case wiping:
		return 2
	default:
		return 1
	}
}

// types are the partition types that are Berth's own, one for each status. They are
// on disks, so they must never change.
var types = map[status]gpt.GUID{
	blank:  guid("919EAEF5-12AB-4786-B5C4-26615E4068CE"),
	ext4:   guid("2230E761-4589-48CF-84B1-52507B7D1F47"),
	xfs:    guid("BF125327-6563-4299-97DE-9BB2D5C8D955"),
	raw:    guid("3ED484A0-B10D-4B82-A54E-6DB15455F07B"),
	wiping: guid("42E28BA5-B68B-45D6-B6D4-E7D7EC7FA8BB"),
}

func guid(text string) gpt.GUID {
	g, err := gpt.ParseGUID(text)
	if err != nil {
		panic(err)
	}
	return g
}

// record is a volume as its partition table describes it.
type record struct {
	id          string
	status      status
	guid        gpt.GUID
	first, last int64
	// wiped is how many parts of the volume, from its beginning, need not be wiped again.
	wiped int64
}

const (
	// maxName is how many characters a partition's name holds.
	maxName = 36
	// withoutHyphens is a bit of a partition's attributes, one of those whose meaning the
	// partition's type defines. It says that the id ends in a UUID whose hyphens were left
	// out: with them the id of a claim's volume is four characters too long.
	withoutHyphens = 1 << 48
	// wipedAt is the first of the bits that say how much is wiped, in parts of the volume. An
	// older Berth does not act on a table with any of them set.
	wipedAt = 49
	// wipedParts is the number of parts of a volume: each is 4 GiB in a volume of 4 TiB.
	wipedParts = 1 << 10
)

// wipedTo returns the record of a volume of length bytes, of which done bytes are wiped.
func (r record) wipedTo(done, length int64) record {
	if part := partsOf(length, 1); part > 0 {
		r.wiped = min(done/part, wipedParts-1)
	}
	return r
}

// partsOf returns how many bytes so many parts of a volume are, rounded down to pages.
func partsOf(length, parts int64) int64 {
	const page = 4096
	return length / wipedParts / page * page * parts
}

var (
	longID  = regexp.MustCompile(`^([a-z]+-)([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})$`)
	shortID = regexp.MustCompile(`^([a-z]+-)([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$`)
)

// checkName returns ErrInvalid for an id that does not fit into a partition's name.
func checkName(id string) error {
	if name, _ := encodeName(id); len(name) > maxName {
		return fmt.Errorf("%w: %q is too long for a partition's name, which holds %d characters", provision.ErrInvalid, id, maxName)
	}
	return nil
}

func encodeName(id string) (name string, attributes uint64) {
	if longID.MatchString(id) { // all of these are longer than maxName
		prefix, uuid, _ := strings.Cut(id, "-")
		return prefix + "-" + strings.ReplaceAll(uuid, "-", ""), withoutHyphens
	}
	return id, 0
}

func decodeName(name string, attributes uint64) (id string, ok bool) {
	id = name
	if attributes&withoutHyphens != 0 {
		id = shortID.ReplaceAllString(name, "$1$2-$3-$4-$5-$6")
	}
	_, bits := encodeName(id) // Berth would write the same name and attributes
	return id, bits == attributes && provision.CheckID(id) == nil
}

func (r record) partition() gpt.Partition {
	name, attributes := encodeName(r.id)
	return gpt.Partition{Type: types[r.status], ID: r.guid, First: r.first, Last: r.last, Attributes: attributes | uint64(r.wiped)<<wipedAt, Name: name} //nolint:gosec // not negative
}

// extent returns the volume's place on the disk in bytes.
func (r record) extent(g gpt.Geometry) (start, length int64) {
	return r.first * g.Block, (r.last - r.first + 1) * g.Block
}

// isBerths says whether a partition is of one of Berth's types.
func isBerths(p gpt.Partition) (status, bool) {
	for s, t := range types {
		if p.Type == t {
			return s, true
		}
	}
	return blank, false
}

// parseRecord reads a partition of one of Berth's types on a disk.
func parseRecord(p gpt.Partition, g gpt.Geometry) (record, error) {
	s, ours := isBerths(p)
	wiped := p.Attributes >> wipedAt & (wipedParts - 1)
	id, ok := decodeName(p.Name, p.Attributes&^(wiped<<wipedAt))
	if !ours || !ok || wiped > 0 && s != wiping {
		return record{}, fmt.Errorf("its partition %q is not as Berth writes it", p.Name)
	}
	if p.First < minFirst/g.Block || p.Last < p.First || p.Last >= (g.Size-minTail)/g.Block {
		return record{}, fmt.Errorf("its volume %s from block %d to %d does not fit on the disk", id, p.First, p.Last)
	}
	return record{id: id, status: s, guid: p.ID, first: p.First, last: p.Last, wiped: int64(wiped)}, nil //nolint:gosec // small
}
