package group

import (
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
)

// A thin pool hands out blank blocks, so its volumes have no record of wiping.
var thinPoolRef = provision.PoolRef{Type: provision.LVMThin, Name: "vg/pool"}

var scratch = provision.Inline{PodUID: "uid-1", Name: "scratch"}

func TestTagsTellTheRoleOfALogicalVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		lv, tags string
		want     record
	}{
		"not Berth's":                 {"pvc-1", "", record{}},
		"blank":                       {"pvc-1", "berth.dev/volume=pvc-1", record{kind: isVolume}},
		"formatted":                   {"pvc-1", "berth.dev/fs=ext4,berth.dev/volume=pvc-1,x", record{kind: isVolume, filesystem: "ext4"}},
		"another volume":              {"pvc-1", "berth.dev/volume=pvc-2", record{}},
		"a longer name":               {"pvc-1", "berth.dev/volume=pvc-11", record{}},
		"only a record":               {"pvc-1", "berth.dev/fs=ext4", record{filesystem: "ext4"}},
		"a pod's":                     {"pvc-1", "berth.dev/inline=uid-1/scratch,berth.dev/volume=pvc-1", record{kind: isVolume, inline: scratch}},
		"a snapshot":                  {"snap-1", "berth.dev/of=pvc-1,berth.dev/snapshot=snap-1,berth.dev/taken=86400", record{kind: isSnapshot, of: "pvc-1", taken: time.Unix(86400, 0).UTC()}},
		"a snapshot that was renamed": {"mine", "berth.dev/of=pvc-1,berth.dev/snapshot=snap-1", record{of: "pvc-1"}},
		"a restored one":              {"pvc-1", "berth.dev/source=snap-1,berth.dev/volume=pvc-1", record{kind: isVolume, source: provision.Source{Snapshot: "snap-1"}}},
		"a clone to be larger": {"pvc-1", "berth.dev/size=4096,berth.dev/source=pvc-2,berth.dev/volume=pvc-1",
			record{kind: isVolume, source: provision.Source{Volume: "pvc-2"}, size: 4096}},
		"to be left as it is":              {"pvc-1", "berth.dev/volume=pvc-1,berth.dev/wipe=None", record{kind: isVolume, wipe: provision.WipeNone}},
		"deleted":                          {"pvc-1", "berth.dev/inline=uid-1/scratch,berth.dev/wipe=Zero,berth.dev/wiping=pvc-1", record{kind: isRemnant, inline: scratch, wipe: provision.WipeZero}},
		"another, deleted":                 {"pvc-1", "berth.dev/wiping=pvc-2", record{}},
		"a volume that is said to be both": {"pvc-1", "berth.dev/volume=pvc-1,berth.dev/wiping=pvc-1", record{kind: isVolume}},
		"likewise in the other order":      {"pvc-1", "berth.dev/wiping=pvc-1,berth.dev/volume=pvc-1", record{kind: isVolume}},
		"a copy to be filled":              {"pvc-1", "berth.dev/copying=pvc-1,berth.dev/source=snap-1", record{kind: isVolume, copying: true, source: provision.Source{Snapshot: "snap-1"}}},
		"a snapshot to be filled":          {"snap-1", "berth.dev/copying=snap-1,berth.dev/of=pvc-1", record{kind: isSnapshot, copying: true, of: "pvc-1"}},
		"another copy to be filled":        {"mine", "berth.dev/copying=pvc-1", record{}},
		"a copy that is said to be whole":  {"pvc-1", "berth.dev/copying=pvc-1,berth.dev/volume=pvc-1", record{kind: isVolume, copying: true}},
		"what a copy is filled from":       {"cow-snap-1", "berth.dev/cow=snap-1,berth.dev/wipe=Zero", record{kind: isCow, cow: "snap-1", wipe: provision.WipeZero}},
		"the same renamed":                 {"mine", "berth.dev/cow=snap-1", record{}},
		"a size that is none":              {"pvc-1", "berth.dev/size=big,berth.dev/volume=pvc-1", record{kind: isVolume}},
	} {
		if got := parseTags(tc.lv, tc.tags); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestANewVolumeIsTaggedWithAllThatIsRecordedOfIt(t *testing.T) {
	for name, tc := range map[string]struct {
		request provision.CreateRequest
		from    carved
		want    string
	}{
		"a claim's": {
			provision.CreateRequest{ID: "pvc-1", Labels: map[string]string{"namespace": "shop", "claim": "data"}}, carved{},
			"berth.dev/volume=pvc-1 berth.dev/wipe=Discard berth.dev/label/claim=data berth.dev/label/namespace=shop",
		},
		"a pod's": {
			provision.CreateRequest{ID: "inline-1", Inline: scratch, Labels: map[string]string{"pod": "web-0"}}, carved{},
			"berth.dev/volume=inline-1 berth.dev/inline=uid-1/scratch berth.dev/wipe=Discard berth.dev/label/pod=web-0",
		},
		"one that is overwritten in the end": {
			provision.CreateRequest{ID: "pvc-1", Wipe: provision.WipeZero}, carved{}, "berth.dev/volume=pvc-1 berth.dev/wipe=Zero",
		},
		"one that is left as it is": {
			provision.CreateRequest{ID: "pvc-1", Wipe: provision.WipeNone}, carved{}, "berth.dev/volume=pvc-1 berth.dev/wipe=None",
		},
		"a restored one": {
			provision.CreateRequest{ID: "pvc-1", Pool: thinPoolRef, Wipe: provision.WipeZero, Source: provision.Source{Snapshot: "snap-1"}}, carved{size: 8, filesystem: "xfs"},
			"berth.dev/volume=pvc-1 berth.dev/source=snap-1 berth.dev/fs=xfs",
		},
		"a clone to be larger": {
			provision.CreateRequest{ID: "pvc-1", Pool: thinPoolRef, Source: provision.Source{Volume: "pvc-2"}}, carved{size: 4},
			"berth.dev/volume=pvc-1 berth.dev/source=pvc-2 berth.dev/size=8",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tags := newTags(tc.request)
			if tc.request.Source != (provision.Source{}) {
				tags = copyTags(tc.request, tc.from, 8)
			}
			if got := strings.Join(tags, " "); got != tc.want {
				t.Errorf("tags %q, want %q", got, tc.want)
			}
			read := parseTags(tc.request.ID, strings.Join(tags, ","))
			if read.kind != isVolume || read.inline != tc.request.Inline || read.source != tc.request.Source || read.filesystem != tc.from.filesystem {
				t.Errorf("the tags are read as %+v", read)
			}
		})
	}
}

func TestANewSnapshotIsTaggedWithAllThatIsRecordedOfIt(t *testing.T) {
	taken := time.Unix(86400, 0).UTC()
	for name, tc := range map[string]struct {
		s    snapshot
		want string
	}{
		"thin": {
			snapshot{carved: carved{Pool: "pool", filesystem: "ext4"}, of: "pvc-1", taken: taken},
			"berth.dev/snapshot=snap-1 berth.dev/of=pvc-1 berth.dev/taken=86400 berth.dev/fs=ext4",
		},
		"thick, to be filled": {
			snapshot{carved: carved{filesystem: "ext4", Wipe: provision.WipeZero, copying: true}, of: "pvc-1", taken: taken},
			"berth.dev/copying=snap-1 berth.dev/of=pvc-1 berth.dev/taken=86400 berth.dev/wipe=Zero berth.dev/fs=ext4",
		},
	} {
		tags := snapshotTags("snap-1", tc.s)
		if got := strings.Join(tags, " "); got != tc.want {
			t.Errorf("%s: tags %q", name, got)
		}
		r := parseTags("snap-1", strings.Join(tags, ","))
		got := snapshot{carved: carved{Pool: tc.s.Pool, filesystem: r.filesystem, Wipe: r.wipe, copying: r.copying}, of: r.of, taken: r.taken}
		if r.kind != isSnapshot || got != tc.s {
			t.Errorf("%s: the tags are read as %+v", name, r)
		}
	}
}
