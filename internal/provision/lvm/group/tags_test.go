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
		"a volume without tags":     {"pvc-1", "", record{}},
		"blank":                     {"pvc-1", "berth.dev/volume=pvc-1", record{kind: isVolume}},
		"formatted":                 {"pvc-1", "berth.dev/fs=ext4,berth.dev/volume=pvc-1,x", record{kind: isVolume, filesystem: "ext4"}},
		"the tag of another volume": {"pvc-1", "berth.dev/volume=pvc-2", record{}},
		"the tag of a longer name":  {"pvc-1", "berth.dev/volume=pvc-11", record{}},
		"a filesystem without the tag of a volume": {"pvc-1", "berth.dev/fs=ext4", record{filesystem: "ext4"}},
		"a volume of a pod":                        {"pvc-1", "berth.dev/inline=uid-1/scratch,berth.dev/volume=pvc-1", record{kind: isVolume, inline: scratch}},
		"a snapshot":                               {"snap-1", "berth.dev/of=pvc-1,berth.dev/snapshot=snap-1,berth.dev/taken=86400", record{kind: isSnapshot, of: "pvc-1", taken: time.Unix(86400, 0).UTC()}},
		"a snapshot that was renamed":              {"mine", "berth.dev/of=pvc-1,berth.dev/snapshot=snap-1", record{of: "pvc-1"}},
		"a restored volume":                        {"pvc-1", "berth.dev/source=snap-1,berth.dev/volume=pvc-1", record{kind: isVolume, source: provision.Source{Snapshot: "snap-1"}}},
		"a clone that is to grow": {"pvc-1", "berth.dev/size=4096,berth.dev/source=pvc-2,berth.dev/volume=pvc-1",
			record{kind: isVolume, source: provision.Source{Volume: "pvc-2"}, size: 4096}},
		"a volume that is left unwiped":                 {"pvc-1", "berth.dev/volume=pvc-1,berth.dev/wipe=None", record{kind: isVolume, wipe: provision.WipeNone}},
		"a deleted volume":                              {"pvc-1", "berth.dev/inline=uid-1/scratch,berth.dev/wipe=Zero,berth.dev/wiping=pvc-1", record{kind: isRemnant, inline: scratch, wipe: provision.WipeZero}},
		"the tag of another deleted volume":             {"pvc-1", "berth.dev/wiping=pvc-2", record{}},
		"the tags of a volume and a deletion":           {"pvc-1", "berth.dev/volume=pvc-1,berth.dev/wiping=pvc-1", record{kind: isVolume}},
		"the tags of a deletion and a volume":           {"pvc-1", "berth.dev/wiping=pvc-1,berth.dev/volume=pvc-1", record{kind: isVolume}},
		"a copy to be filled":                           {"pvc-1", "berth.dev/copying=pvc-1,berth.dev/source=snap-1", record{kind: isVolume, copying: true, source: provision.Source{Snapshot: "snap-1"}}},
		"a snapshot to be filled":                       {"snap-1", "berth.dev/copying=snap-1,berth.dev/of=pvc-1", record{kind: isSnapshot, copying: true, of: "pvc-1"}},
		"the tag of another unfinished copy":            {"mine", "berth.dev/copying=pvc-1", record{}},
		"the tags of an unfinished and a finished copy": {"pvc-1", "berth.dev/copying=pvc-1,berth.dev/volume=pvc-1", record{kind: isVolume, copying: true}},
		"a copy-on-write volume":                        {"cow-snap-1", "berth.dev/cow=snap-1,berth.dev/wipe=Zero", record{kind: isCow, cow: "snap-1", wipe: provision.WipeZero}},
		"a renamed copy-on-write volume":                {"mine", "berth.dev/cow=snap-1", record{}},
		"a copy-on-write volume by the tag of a volume": {"cow-pvc-1", "berth.dev/volume=pvc-1", record{}},
		"the tag of a copy-on-write volume on the copy": {"snap-1", "berth.dev/cow=snap-1", record{}},
		"a deleted volume that is wiped in part":        {"pvc-1", "berth.dev/wiped=4096,berth.dev/wiping=pvc-1", record{kind: isRemnant, wiped: 4096}},
		"a size that is too large":                      {"pvc-1", "berth.dev/size=99999999999999999999,berth.dev/volume=pvc-1", record{kind: isVolume}},
		"a size that is no number":                      {"pvc-1", "berth.dev/size=big,berth.dev/volume=pvc-1", record{kind: isVolume}},
	} {
		if got := parseTags(tc.lv, tc.tags); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestTheIdentityOfALogicalVolumeIsReadBack(t *testing.T) {
	for _, id := range []string{"pvc-1", "snap-1"} {
		for _, copying := range []bool{false, true} {
			r := parseTags(id, identity(id, copying))
			if want := sortOf(id); r.kind != want || r.copying != copying {
				t.Errorf("%s, copying is %v, is read as %+v", id, copying, r)
			}
		}
	}
}

func TestOnlyWhatBerthMadeUnderItsPresentNameIsManaged(t *testing.T) {
	for tags, want := range map[string]bool{"berth.dev/managed=vg": true, "x,berth.dev/managed=vg": true, "berth.dev/managed=vg0": false, "managed=vg": false, "": false} {
		if got := managed("vg", tags); got != want {
			t.Errorf("%q: %v", tags, got)
		}
	}
}

func TestZerosReachAllStorageOfAPlainLayoutOnly(t *testing.T) {
	for layout, want := range map[string]string{"linear": "", "striped": "", "raid,raid1": "", "": "", "cache": "cache", "linear,cache": "linear,cache", "writecache": "writecache"} {
		if got := strange(layout); got != want {
			t.Errorf("%q: %q", layout, got)
		}
	}
}

func TestANewVolumeIsTaggedWithAllThatIsRecordedOfIt(t *testing.T) {
	for name, tc := range map[string]struct {
		request provision.CreateRequest
		from    carved
		want    string
	}{
		"a volume of a claim": {
			provision.CreateRequest{ID: "pvc-1", Labels: map[string]string{"namespace": "shop", "claim": "data"}}, carved{},
			"berth.dev/volume=pvc-1 berth.dev/wipe=Discard berth.dev/label/claim=data berth.dev/label/namespace=shop",
		},
		"a volume of a pod": {
			provision.CreateRequest{ID: "inline-1", Inline: scratch, Labels: map[string]string{"pod": "web-0"}}, carved{},
			"berth.dev/volume=inline-1 berth.dev/inline=uid-1/scratch berth.dev/wipe=Discard berth.dev/label/pod=web-0",
		},
		"a volume that is overwritten in the end": {
			provision.CreateRequest{ID: "pvc-1", Wipe: provision.WipeZero}, carved{}, "berth.dev/volume=pvc-1 berth.dev/wipe=Zero",
		},
		"a volume that is left unwiped": {
			provision.CreateRequest{ID: "pvc-1", Wipe: provision.WipeNone}, carved{}, "berth.dev/volume=pvc-1 berth.dev/wipe=None",
		},
		"a restored volume": {
			provision.CreateRequest{ID: "pvc-1", Pool: thinPoolRef, Wipe: provision.WipeZero, Source: provision.Source{Snapshot: "snap-1"}}, carved{size: 8, filesystem: "xfs"},
			"berth.dev/volume=pvc-1 berth.dev/source=snap-1 berth.dev/fs=xfs",
		},
		"a clone that is to grow": {
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
		"of a blank volume": {
			snapshot{carved: carved{Pool: "pool"}, of: "pvc-1", taken: taken},
			"berth.dev/snapshot=snap-1 berth.dev/of=pvc-1 berth.dev/taken=86400",
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
