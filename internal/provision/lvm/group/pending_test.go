package group

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth.dev/berth/internal/provision"
)

// As LVM 2.03.16 reports a volume of Berth's that is copied to a snapshot.
const copiedGroup = `{"report":[
 {"vg":[{"vg_name":"vg","vg_uuid":"u-1","vg_seqno":"21","vg_extent_size":"4194304","vg_extent_count":"100","vg_free_count":"90","vg_missing_pv_count":"0","vg_exported":"0"}],
  "pv":[{"pv_name":"/dev/sda"}],
  "lv":[
   {"lv_name":"cow-snap-1","lv_size":"16777216","lv_tags":"berth.dev/cow=snap-1,berth.dev/wipe=Zero","lv_active_locally":"1","lv_device_open":"0","lv_health_status":"","lv_attr":"swi-a-s---","lv_layout":"linear","pool_lv":"","origin":"pvc-1"},
   {"lv_name":"pvc-1","lv_size":"12582912","lv_tags":"berth.dev/volume=pvc-1","lv_active_locally":"1","lv_device_open":"0","lv_health_status":"","lv_attr":"owi-a-s---","lv_layout":"linear","pool_lv":"","origin":""},
   {"lv_name":"snap-1","lv_size":"12582912","lv_tags":"berth.dev/copying=snap-1,berth.dev/of=pvc-1","lv_active_locally":"1","lv_device_open":"0","lv_health_status":"","lv_attr":"-wi-a-----","lv_layout":"linear","pool_lv":"","origin":""}
  ],"pvseg":[{}],"seg":[{}]}
 ]}`

func TestTheNextStepOfACopyIsReadFromTheReport(t *testing.T) {
	for name, tc := range map[string]struct {
		replace []string
		next    Todo
		lost    bool
		// copying, cows and wiping are the figures that other packages see.
		copying bool
		cows    int64
		wiping  int
	}{
		"the copy is to be filled": {nil, TodoFill, false, true, 4 * 4 << 20, 0},
		"the copy is whole":        {[]string{"copying=snap-1", "snapshot=snap-1"}, TodoDrop, false, true, 4 * 4 << 20, 0},
		"the copy is whole, and the copy-on-write volume lost the origin":          {[]string{"copying=snap-1", "snapshot=snap-1", `"origin":"pvc-1"`, `"origin":""`}, todoNothing, false, false, 0, 1},
		"the copy-on-write volume lost the origin before the copy was whole":       {[]string{`"origin":"pvc-1"`, `"origin":""`}, todoNothing, true, true, 0, 1},
		"the copy is whole, and the kernel invalidated the copy-on-write snapshot": {[]string{"copying=snap-1", "snapshot=snap-1", "swi-a-s", "swi-I-s"}, TodoDrop, false, true, 4 * 4 << 20, 0},
		"another program took the copy-on-write volume over":                       {[]string{"berth.dev/cow=snap-1", "mine"}, todoNothing, true, true, 0, 0},
		"the kernel invalidated the copy-on-write snapshot":                        {[]string{"swi-a-s", "swi-I-s"}, todoNothing, true, true, 4 * 4 << 20, 0},
		"the kernel invalidated and suspended the copy-on-write snapshot":          {[]string{"swi-a-s", "swi-S-s"}, todoNothing, true, true, 4 * 4 << 20, 0},
		"a call deleted the unfinished copy":                                       {[]string{"copying=snap-1", "wiping=snap-1"}, TodoDrop, false, false, 4 * 4 << 20, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := reportOf(t, copiedGroup, tc.replace...)
			if got := g.Next("snap-1"); got != tc.next || (g.lost("snap-1") != "") != tc.lost {
				t.Errorf("next is %v and lost %q, want %v and %t", got, g.lost("snap-1"), tc.next, tc.lost)
			}
			p := g.Pool("", noon)
			if len(p.Wiping) != tc.wiping || g.cows() != tc.cows || p.Free != 90*4<<20 {
				t.Errorf("the pool is %+v, with cows of %d", p, g.cows())
			}
			if s := g.Snapshots["snap-1"]; s != nil && (g.ViewSnapshot("snap-1").Copying != tc.copying || (g.ViewSnapshot("snap-1").Problem != "") != tc.lost) {
				t.Errorf("the snapshot is %+v", g.ViewSnapshot("snap-1"))
			}
		})
	}
}

func TestACopyOfASnapshotNeedsThatAndNoOther(t *testing.T) {
	restored := []string{"copying=snap-1", "snapshot=snap-1", "berth.dev/volume=pvc-1", "berth.dev/copying=pvc-1,berth.dev/source=snap-1", "berth.dev/cow", "mine"}
	g := reportOf(t, copiedGroup, restored...)
	if g.Next("pvc-1") != TodoFill || g.needed("snap-1") != "pvc-1" || g.lost("pvc-1") != "" {
		t.Errorf("next is %v, needed by %q, lost %q", g.Next("pvc-1"), g.needed("snap-1"), g.lost("pvc-1"))
	}
	delete(g.Snapshots, "snap-1")
	if g.Next("pvc-1") != todoNothing || g.View("pvc-1").Problem == "" {
		t.Errorf("without it next is %v of %+v", g.Next("pvc-1"), g.View("pvc-1"))
	}
}

func TestAVolumeTaggedAsCopyingInAThinPoolIsNotBerths(t *testing.T) {
	g := thinReport(t, "berth.dev/volume=pvc-1", "berth.dev/copying=pvc-1")
	if len(g.Volumes)+len(g.Pending) > 0 || !g.Others["pvc-1"] {
		t.Errorf("volumes %v, pending %v", g.Volumes, g.Pending)
	}
}

func TestTriesThatFailInARowAreRarerAndRarer(t *testing.T) {
	var tries Tries
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
		if tries.Again(errors.New("no"), noon, time.Second, 5*time.Second); !tries.Due.Equal(noon.Add(want)) {
			t.Errorf("the next is due after %v, want %v", tries.Due.Sub(noon), want)
		}
	}
}

// A cow is as large as LVM would at most make one, so that LVM takes the size as it is.
func TestACowHasRoomForAllThatCanBeOverwritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, provision.MaxSize/2).Draw(t, "size")
		got := cowSize(size)
		chunks := (size + cowChunk - 1) / cowChunk
		areas := got/cowChunk - 1 - chunks // the rest, after a header, is for the records
		// An area records chunks until it is full, and then another one follows to end the list.
		if records := areas * cowChunk / 16; got%cowChunk != 0 || records <= chunks || records > chunks+cowChunk/16 {
			t.Fatalf("%d bytes for %d have room for the records of %d of %d chunks", got, size, records, chunks)
		}
	})
}
