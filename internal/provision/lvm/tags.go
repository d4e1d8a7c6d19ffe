package lvm

import (
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision"
)

// Tags of a logical volume. LVM allows letters, digits and _+.-/=!:&# in them.
const (
	tagVolume = "berth.dev/volume="
	tagFS     = "berth.dev/fs="
	tagInline = "berth.dev/inline=" // pod's UID / name in the pod
	tagLabel  = "berth.dev/label/"
)

// newTags are the tags of a new volume, in a stable order.
func newTags(r provision.CreateRequest) []string {
	tags := []string{tagVolume + r.ID}
	if r.Inline != (provision.Inline{}) {
		tags = append(tags, tagInline+r.Inline.PodUID+"/"+r.Inline.Name)
	}
	for _, k := range slices.Sorted(maps.Keys(r.Labels)) {
		tags = append(tags, tagLabel+k+"="+r.Labels[k])
	}
	return tags
}

// record is what the tags say of a volume.
type record struct {
	filesystem string
	inline     provision.Inline
}

// parseTags says whether a logical volume of this name is Berth's, and what is
// recorded of it. A volume that somebody renamed is no longer Berth's: its
// name and its tag disagree, and guessing which is right could destroy data.
func parseTags(name, tags string) (r record, ours bool) {
	for tag := range strings.SplitSeq(tags, ",") {
		if fs, ok := strings.CutPrefix(tag, tagFS); ok {
			r.filesystem = fs
		}
		if owner, ok := strings.CutPrefix(tag, tagInline); ok {
			r.inline.PodUID, r.inline.Name, _ = strings.Cut(owner, "/")
		}
		ours = ours || tag == tagVolume+name
	}
	return r, ours
}
