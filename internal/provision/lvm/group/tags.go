package group

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
)

// Tags of a logical volume. LVM allows letters, digits and _+.-/=!:&# in them.
const (
	tagVolume   = "berth.dev/volume="
	tagSnapshot = "berth.dev/snapshot="
	tagFS       = "berth.dev/fs="
	tagInline   = "berth.dev/inline=" // pod's UID / name in the pod
	tagLabel    = "berth.dev/label/"

	tagSource = "berth.dev/source=" // id of the source that a volume began as a copy of
	tagSize   = "berth.dev/size="   // bytes that a copy must have before it is used
	tagOf     = "berth.dev/of="     // id of the volume that a snapshot is of
	tagTaken  = "berth.dev/taken="  // when a snapshot was taken, in unix seconds

	tagCopying = "berth.dev/copying=" // in place of tagVolume or tagSnapshot until a thick copy is whole
	tagCow     = "berth.dev/cow="     // id of the thick copy that is filled from a copy-on-write snapshot

	tagWipe   = "berth.dev/wipe="   // whether and how a volume's bytes are wiped
	tagWiping = "berth.dev/wiping=" // in place of tagVolume once it is deleted
	tagWiped  = "berth.dev/wiped="  // bytes of it that need not be wiped again
)

// tagManaged is the tag of volume groups and thin pools that Berth made, with their names. One
// that was renamed, or a copy with another name, is not Berth's.
const tagManaged = "berth.dev/managed="

func managed(name, tags string) bool {
	return slices.Contains(strings.Split(tags, ","), tagManaged+name)
}

// newTags are the tags of a new volume, in a stable order.
func newTags(r provision.CreateRequest) []string {
	tags := []string{tagVolume + r.ID}
	if r.Inline != (provision.Inline{}) {
		tags = append(tags, tagInline+r.Inline.PodUID+"/"+r.Inline.Name)
	}
	if _, thin := Split(r.Pool); thin == "" {
		tags = append(tags, wipeTag(r.Wipe))
	}
	for _, k := range slices.Sorted(maps.Keys(r.Labels)) {
		tags = append(tags, tagLabel+k+"="+r.Labels[k])
	}
	return tags
}

// copyTags are the tags of a new volume that begins as a copy. They and its size say whether a
// thin one is as large as it must be. They alone say whether a thick one is filled.
func copyTags(r provision.CreateRequest, from carved, size int64) []string {
	tags := append(newTags(r), tagSource+SourceID(r.Source))
	if from.filesystem != "" {
		tags = append(tags, tagFS+from.filesystem)
	}
	switch _, thin := Split(r.Pool); {
	case thin == "":
		tags[0] = tagCopying + r.ID
	case size > from.size:
		tags = append(tags, tagSize+strconv.FormatInt(size, 10))
	}
	return tags
}

// snapshotTags are the tags of a new snapshot.
func snapshotTags(id string, s snapshot) []string {
	tags := []string{tagSnapshot + id, tagOf + s.of, tagTaken + strconv.FormatInt(s.taken.Unix(), 10)}
	if s.Pool == "" {
		tags[0] = tagCopying + id
		tags = append(tags, wipeTag(s.Wipe))
	}
	if s.filesystem != "" {
		tags = append(tags, tagFS+s.filesystem)
	}
	return tags
}

// cowTags are the tags of a new copy-on-write snapshot for a copy.
func cowTags(id string, wipe provision.Wipe) []string { return []string{tagCow + id, wipeTag(wipe)} }

func wipeTag(how provision.Wipe) string { return tagWipe + string(cmp.Or(how, provision.WipeDiscard)) }

// identity returns the tag that makes a logical volume one of Berth's. The tag is another one
// while a thick copy is not filled yet.
func identity(id string, copying bool) string {
	switch {
	case copying:
		return tagCopying + id
	case provision.CheckSnapshotID(id) == nil:
		return tagSnapshot + id
	}
	return tagVolume + id
}

// kind says what role a logical volume plays for Berth.
type kind int

const (
	foreign kind = iota
	isVolume
	isSnapshot
	// isRemnant is the logical volume of a deleted volume.
	isRemnant
	// isCow keeps a volume's data while it is copied.
	isCow
)

// record holds the contents of the tags of a logical volume.
type record struct {
	kind kind
	// copying says that it is not filled yet; cow is the id of the copy that it is for.
	copying    bool
	cow        string
	filesystem string
	inline     provision.Inline
	source     provision.Source
	// namespace and claim are the labels of a volume that was made for a claim.
	namespace, claim string
	size             int64
	of               string
	taken            time.Time
	// wipe says whether and how its bytes are wiped. If that is not recorded, or not known, they
	// are wiped.
	wipe provision.Wipe
	// wiped is how many bytes from its beginning were overwritten since it was deleted.
	wiped int64
}

// parseTags returns the record of a logical volume of this name. One that was renamed is no
// longer Berth's: its name and its tag disagree, and guessing which is right could destroy data.
func parseTags(name, tags string) (r record) {
	for tag := range strings.SplitSeq(tags, ",") {
		key, value, _ := strings.Cut(tag, "=")
		switch key + "=" {
		case tagVolume, tagSnapshot, tagCopying, tagCow, tagWiping:
			r.identify(key+"=", name, value)
		case tagWipe:
			r.wipe = provision.Wipe(value)
		case tagWiped:
			r.wiped = parseNumber(value)
		case tagFS:
			r.filesystem = value
		case tagInline:
			r.inline.PodUID, r.inline.Name, _ = strings.Cut(value, "/")
		case tagSource:
			r.source = sourceOf(value)
		case tagLabel + provision.LabelNamespace + "=":
			r.namespace = value
		case tagLabel + provision.LabelClaim + "=":
			r.claim = value
		case tagSize:
			r.size = parseNumber(value)
		case tagOf:
			r.of = value
		case tagTaken:
			r.taken = time.Unix(parseNumber(value), 0).UTC()
		}
	}
	return r
}

// claimOf returns the claim that a volume was made for; empty if its labels do not say.
func (r record) claimOf() string {
	return provision.ClaimOf(map[string]string{provision.LabelNamespace: r.namespace, provision.LabelClaim: r.claim})
}

// identify takes in a tag that tells the kind of a logical volume, if the tag's id fits its name.
func (r *record) identify(tag, name, value string) {
	switch {
	case tag == tagCow && cowName(value) == name:
		r.kind, r.cow = isCow, value
	case tag == tagCow || value != name:
	case tag == tagVolume:
		r.kind = isVolume
	case tag == tagSnapshot:
		r.kind = isSnapshot
	case tag == tagCopying:
		r.kind, r.copying = sortOf(name), true
	case r.kind == foreign: // Berth never sets both tags; with both it stays a volume
		r.kind = isRemnant
	}
}

// sortOf returns the kind of a whole copy, by its id.
func sortOf(id string) kind {
	if provision.CheckSnapshotID(id) == nil {
		return isSnapshot
	}
	return isVolume
}

// parseNumber returns 0 for text that Berth never writes.
func parseNumber(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// SourceID is the id of a source. The id of a snapshot cannot be taken for that of a volume.
func SourceID(s provision.Source) string { return s.Snapshot + s.Volume }

func sourceOf(id string) provision.Source {
	if provision.CheckSnapshotID(id) == nil {
		return provision.Source{Snapshot: id}
	}
	return provision.Source{Volume: id}
}
