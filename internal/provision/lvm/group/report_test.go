package group

import (
	"strings"
	"testing"
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
	groups, err := Parse([]byte(twoGroups))
	if err != nil || len(groups) != 2 {
		t.Fatalf("parsed %v, %v", groups, err)
	}
	a, b := groups[0], groups[1]
	if a.total != 40<<20 || a.foreign != 12<<20 || a.free("") != 16<<20 || a.Seqno != 7 || len(a.Devices) != 2 || !a.Others["root"] {
		t.Errorf("group a: %+v with %d free", a, a.free(""))
	}
	if v := a.View("pvc-1"); v.Size != 12<<20 || v.Filesystem != "xfs" || v.Content.Source != "/dev/a/pvc-1" || !strings.Contains(v.Problem, "partial") {
		t.Errorf("volume: %+v", v)
	}
	if b.free("") != 20<<20 || !strings.Contains(b.problem, "1 of 1") {
		t.Errorf("group b: %+v", b)
	}
}

func TestReportThatIsNotWholeIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"cut short":         twoGroups[:len(twoGroups)-20],
		"empty":             "",
		"a word for number": strings.Replace(twoGroups, `"vg_extent_count":5`, `"vg_extent_count":"five"`, 1),
		"no extent size":    strings.Replace(twoGroups, `"vg_extent_size":4194304`, `"vg_extent_size":0`, 1),
	} {
		if groups, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s: parsed %+v", name, groups)
		}
	}
}

func TestMappingNamesAreLVMs(t *testing.T) {
	if got := MappingName("vg-a", "pvc-1"); got != "vg--a-pvc--1" {
		t.Errorf("got %q", got)
	}
}
