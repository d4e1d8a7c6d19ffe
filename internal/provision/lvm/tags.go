package lvm

import (
	"maps"
	"slices"
	"strings"
)

// Tags of a logical volume. LVM allows letters, digits and _+.-/=!:&# in them.
const (
	tagVolume = "berth.dev/volume="
	tagFS     = "berth.dev/fs="
	tagLabel  = "berth.dev/label/"
)

// newTags are the tags of a new volume, in a stable order.
func newTags(id string, labels map[string]string) []string {
	tags := []string{tagVolume + id}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		tags = append(tags, tagLabel+k+"="+labels[k])
	}
	return tags
}

// parseTags says whether a logical volume of this name is Berth's, and the
// filesystem recorded on it. A volume that somebody renamed is no longer Berth's: its
// name and its tag disagree, and guessing which is right could destroy data.
func parseTags(name, tags string) (filesystem string, ours bool) {
	for tag := range strings.SplitSeq(tags, ",") {
		if fs, ok := strings.CutPrefix(tag, tagFS); ok {
			filesystem = fs
		}
		ours = ours || tag == tagVolume+name
	}
	return filesystem, ours
}
