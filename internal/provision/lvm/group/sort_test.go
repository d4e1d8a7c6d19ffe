package group

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
)

// As LVM 2.03.16 reports a pool with a volume of Berth's that is the origin of a
// thin and of a copy-on-write snapshot: being an origin hides in its type that it is
// thin.
const thinGroup = `{"report":[
 {"vg":[{"vg_name":"vg","vg_uuid":"u-1","vg_seqno":"21","vg_extent_size":"4194304","vg_extent_count":"1000","vg_free_count":"932","vg_missing_pv_count":"0","vg_exported":"0"}],
  "pv":[{"pv_name":"/dev/sda"}],
  "lv":[
   {"lv_name":"cow","lv_size":"8388608","lv_tags":"","lv_active_locally":"1","lv_device_open":"0","lv_health_status":"","lv_attr":"swi-a-s---","lv_layout":"linear","pool_lv":"","origin":"pvc-1"},
   {"lv_name":"pool","lv_size":"268435456","lv_tags":"","lv_active_locally":"1","lv_device_open":"1","lv_health_status":"","lv_attr":"twi-aotz--","lv_layout":"thin,pool","pool_lv":"","origin":""},
   {"lv_name":"pvc-1","lv_size":"100663296","lv_tags":"berth.dev/volume=pvc-1","lv_active_locally":"1","lv_device_open":"0","lv_health_status":"","lv_attr":"owi-a-tz--","lv_layout":"thin,sparse","pool_lv":"pool","origin":""},
   {"lv_name":"snap","lv_size":"100663296","lv_tags":"","lv_active_locally":"0","lv_device_open":"-1","lv_health_status":"","lv_attr":"Vwi---tz-k","lv_layout":"thin,sparse","pool_lv":"pool","origin":"pvc-1"}
  ],"pvseg":[{}],"seg":[{}]}
 ]}`

var noon = time.Unix(43200, 0)

func thinReport(t *testing.T, replace ...string) *Facts { return reportOf(t, thinGroup, replace...) }

// reportOf is the group of a report in which some text is replaced.
func reportOf(t *testing.T, text string, replace ...string) *Facts {
	t.Helper()
	groups, err := Parse([]byte(strings.NewReplacer(replace...).Replace(text)))
	if err != nil || len(groups) != 1 {
		t.Fatalf("parsed %v, %v", groups, err)
	}
	return groups[0]
}

func TestThinVolumesAreSortedByTheirLayout(t *testing.T) {
	g := thinReport(t)
	// The pool's data, its metadata, the spare of that, and the copy-on-write snapshot.
	if g.foreign != 68*4<<20 || g.free("") != 932*4<<20 {
		t.Errorf("the group has %d foreign and %d free", g.foreign, g.free(""))
	}
	if p := g.Pools["pool"]; p == nil || p.size != 256<<20 || p.foreign != 96<<20 || !p.Active || !p.zeroing || g.free("pool") != 64<<20 {
		t.Errorf("pool %+v", p)
	}
	if v := g.View("pvc-1"); v.Pool != (provision.PoolRef{Type: provision.LVMThin, Name: "vg/pool"}) || v.Content.Source != "/dev/vg/pvc-1" || v.Size != 96<<20 {
		t.Errorf("volume %+v", v)
	}
	if others := slices.Sorted(maps.Keys(g.Others)); !slices.Equal(others, []string{"cow", "pool", "snap"}) {
		t.Errorf("others are %v", others)
	}
}

func TestTheProblemsOfAThinPoolAreReported(t *testing.T) {
	for name, tc := range map[string]struct {
		replace []string
		want    string
	}{
		"a sound pool":          {nil, ""},
		"blocks are not zeroed": {[]string{"twi-aotz--", "twi-aot---"}, "lvchange --zero y vg/pool"},
		"LVM says no flags":     {[]string{"twi-aotz--", ""}, "lvchange --zero y vg/pool"},
		"the pool lacks a disk": {[]string{`"","lv_attr":"twi`, `"partial","lv_attr":"twi`}, "partial"},
		"the kernel and not LVM tells that the pool is out of data": {[]string{`"","lv_attr":"twi`, `"out_of_data","lv_attr":"twi`}, ""},
	} {
		if got := thinReport(t, tc.replace...).Pool("pool", noon).Problem; !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestTheVolumesThatDependOnAnOriginAreKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		replace []string
		want    string
	}{
		"a copy-on-write snapshot":                      {nil, "cow"},
		"a thin snapshot alone":                         {[]string{`"","origin":"pvc-1"}`, `"","origin":""}`}, ""},
		"a thin volume of another pool with the origin": {[]string{`"","origin":"pvc-1"}`, `"","origin":""}`, `"pool_lv":"pool","origin":"pvc-1"`, `"pool_lv":"pool2","origin":"pvc-1"`}, "snap"},
	} {
		if got := thinReport(t, tc.replace...).dependents["pvc-1"]; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestOnlyWordsOfALayoutCount(t *testing.T) {
	for layout, want := range map[string]bool{"thin,sparse": true, "sparse,thin": true, "thin": false, "thinner,sparse": false, "": false, "linear": false} {
		if got := (logicalVolume{Layout: layout}).is("thin", "sparse"); got != want {
			t.Errorf("%q: %v, want %v", layout, got, want)
		}
	}
}
