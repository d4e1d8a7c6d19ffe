package lvm

import (
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
)

const twoGroups = `{"report":[
 {"vg":[{"vg_name":"a","vg_uuid":"u-1","vg_seqno":"7","vg_extent_size":"4194304","vg_extent_count":"10","vg_free_count":"4","vg_missing_pv_count":"0","vg_exported":"0"}],
  "pv":[{"pv_name":"/dev/sda"},{"pv_name":"/dev/sdb"}],
  "lv":[{"lv_name":"root","lv_size":"8388608","lv_tags":"","lv_active_locally":"1","lv_device_open":"1","lv_health_status":""},
        {"lv_name":"pvc-1","lv_size":"12582912","lv_tags":"berth.dev/fs=xfs,berth.dev/label/claim=data,berth.dev/volume=pvc-1","lv_active_locally":"-1","lv_device_open":"-1","lv_health_status":"partial"}],
  "pvseg":[{}],"seg":[]},
 {"vg":[{"vg_name":"b","vg_uuid":"u-2","vg_seqno":1,"vg_extent_size":4194304,"vg_extent_count":5,"vg_free_count":5,"vg_missing_pv_count":1,"vg_exported":0}],
  "pv":[{"pv_name":"[unknown]"}],"lv":[]},
 {"vg":[{}],"pv":[{"pv_name":"/dev/sdz"}],"lv":[]}
 ],"log":[]}`

func TestReportIsReadInBothFormats(t *testing.T) {
	groups, err := parse([]byte(twoGroups))
	if err != nil || len(groups) != 2 {
		t.Fatalf("parsed %v, %v", groups, err)
	}
	a, b := groups[0], groups[1]
	if a.total != 40<<20 || a.foreign != 12<<20 || a.free("") != 16<<20 || a.seqno != 7 || len(a.devices) != 2 || !a.others["root"] {
		t.Errorf("group a: %+v with %d free", a, a.free(""))
	}
	if v := a.view("pvc-1"); v.Size != 12<<20 || v.Filesystem != "xfs" || v.Device != "/dev/a/pvc-1" || !strings.Contains(v.Problem, "partial") {
		t.Errorf("volume: %+v", v)
	}
	if b.free("") != 20<<20 || !strings.Contains(b.problem, "1 of 1") {
		t.Errorf("group b: %+v", b)
	}
}

func TestTwoGroupsOfOneNameAreAProblem(t *testing.T) {
	groups, err := parse([]byte(strings.ReplaceAll(twoGroups, `"vg_name":"b"`, `"vg_name":"a"`)))
	if err != nil || len(groups) != 1 || !strings.Contains(groups[0].problem, "u-2") {
		t.Errorf("parsed %+v, %v", groups, err)
	}
}

func TestReportThatIsNotWholeIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"cut short":         twoGroups[:len(twoGroups)-20],
		"empty":             "",
		"a word for number": strings.Replace(twoGroups, `"vg_extent_count":5`, `"vg_extent_count":"five"`, 1),
		"no extent size":    strings.Replace(twoGroups, `"vg_extent_size":4194304`, `"vg_extent_size":0`, 1),
	} {
		if groups, err := parse([]byte(text)); err == nil {
			t.Errorf("%s: parsed %+v", name, groups)
		}
	}
}

func TestTagsSayWhoseAVolumeIs(t *testing.T) {
	for name, tc := range map[string]struct {
		tags string
		want record
		ours bool
	}{
		"none":            {},
		"ours, blank":     {tags: "berth.dev/volume=pvc-1", ours: true},
		"ours, formatted": {"berth.dev/fs=ext4,berth.dev/volume=pvc-1,x", record{filesystem: "ext4"}, true},
		"another's":       {tags: "berth.dev/volume=pvc-2"},
		"a longer name":   {tags: "berth.dev/volume=pvc-11"},
		"only a record":   {"berth.dev/fs=ext4", record{filesystem: "ext4"}, false},
		"a pod's":         {"berth.dev/inline=uid-1/scratch,berth.dev/volume=pvc-1", record{inline: scratch}, true},
	} {
		if got, ours := parseTags("pvc-1", tc.tags); got != tc.want || ours != tc.ours {
			t.Errorf("%s: %+v, %v", name, got, ours)
		}
	}
}

var scratch = provision.Inline{PodUID: "uid-1", Name: "scratch"}

func TestANewVolumeIsTaggedWithAllThatIsRecordedOfIt(t *testing.T) {
	for name, tc := range map[string]struct {
		request provision.CreateRequest
		want    string
	}{
		"a claim's": {
			provision.CreateRequest{ID: "pvc-1", Labels: map[string]string{"namespace": "shop", "claim": "data"}},
			"berth.dev/volume=pvc-1 berth.dev/label/claim=data berth.dev/label/namespace=shop",
		},
		"a pod's": {
			provision.CreateRequest{ID: "inline-1", Inline: scratch, Labels: map[string]string{"pod": "web-0"}},
			"berth.dev/volume=inline-1 berth.dev/inline=uid-1/scratch berth.dev/label/pod=web-0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tags := newTags(tc.request)
			if got := strings.Join(tags, " "); got != tc.want {
				t.Errorf("tags %q, want %q", got, tc.want)
			}
			read, ours := parseTags(tc.request.ID, strings.Join(tags, ","))
			if !ours || read.inline != tc.request.Inline {
				t.Errorf("the tags are read as %+v, %v", read, ours)
			}
		})
	}
}

func TestMappingNamesAreLVMs(t *testing.T) {
	if got := mappingName("vg-a", "pvc-1"); got != "vg--a-pvc--1" {
		t.Errorf("got %q", got)
	}
}
