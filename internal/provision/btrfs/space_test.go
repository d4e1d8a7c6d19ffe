package btrfs

import (
	"strings"
	"testing"

	"berth.dev/berth/internal/provision/btrfs/kernel"
)

func TestRoomIsWhatTheDisksHoldLessMetadataAndAChunk(t *testing.T) {
	const g = gibibyte
	disks := func(sizes ...int64) (all []kernel.Disk) {
		for _, size := range sizes {
			all = append(all, kernel.Disk{Size: size * g})
		}
		return all
	}
	space := func(profile string, metadata int64, d []kernel.Disk) kernel.Space {
		return kernel.Space{Data: kernel.Chunks{Profiles: strings.Fields(profile)}, Metadata: kernel.Chunks{Raw: metadata}, Disks: d}
	}
	for name, tc := range map[string]struct {
		kernel.Space
		want    int64
		trouble string
	}{
		"one disk":                           {space("single", 0, disks(160)), 160*g - 10*g - g/4 - g, ""},
		"metadata within what is left to it": {space("single", 10*g, disks(160)), 160*g - 10*g - g/4 - g, ""},
		"more metadata than that":            {space("single", 20*g, disks(160)), 160*g - 20*g - g, ""},
		"a small disk":                       {space("single", 0, disks(1)), (g - g/16 - g/4 - g/10) / unit * unit, ""},
		"a tiny disk":                        {space("single", g/2, []kernel.Disk{{Size: g / 2}}), 0, ""},
		"two disks":                          {space("single", 0, disks(80, 80)), 160*g - 10*g - g/4 - g, ""},
		"a mirror":                           {space("raid1", 0, disks(80, 80)), (160*g - 10*g - g/4 - 2*g) / 2 / unit * unit, ""},
		"a mirror of unequal disks":          {space("raid1", 0, disks(120, 40)), (80*g - 10*g - g/4 - 2*g) / 2 / unit * unit, ""},
		"two copies on one disk":             {space("dup", 0, disks(160)), (160*g - 10*g - g/4 - 2*g) / 2 / unit * unit, ""},
		"on its way to a mirror":             {space("single raid1", 0, disks(80, 80)), (160*g - 10*g - g/4 - 2*g) / 2 / unit * unit, ""},
		"stripes over equal disks":           {space("raid10", 0, disks(40, 40, 40, 40)), (160*g - 10*g - g/4 - 2*g) / 2 / unit * unit, ""},
		"stripes over a large disk":          {space("raid10", 0, disks(100, 20, 20, 20)), (80*g - 10*g - g/4 - 2*g) / 2 / unit * unit, ""},
		"stripes over pairs":                 {space("raid10", 0, disks(60, 20, 60, 20)), (160*g - 10*g - g/4 - 2*g) / 2 / unit * unit, ""},
		"parity":                             {space("raid5", 0, disks(80, 80, 80)), 0, "convert it"},
		"mixed with metadata":                {space("", 0, disks(1)), 0, "apart from metadata"},
		"a disk that is missing":             {space("raid1", 0, append(disks(80), kernel.Disk{Missing: true})), 0, "lacks a disk"},
	} {
		got, trouble := capacity(tc.Space)
		if tc.trouble == "" {
			read := tc.Space
			read.ReadOnly = true
			if _, why := capacity(read); !strings.Contains(why, "read-only") {
				t.Errorf("%s, and read-only: %q", name, why)
			}
		}
		if got != tc.want || !strings.Contains(trouble, tc.trouble) || (trouble == "") != (tc.trouble == "") {
			t.Errorf("%s: room for %d bytes, %q; want %d, %q", name, got, trouble, tc.want, tc.trouble)
		}
	}
}

func TestAFilesystemIsCrowdedOnceNoRoomIsLeftForMoreMetadata(t *testing.T) {
	s := kernel.Space{Metadata: kernel.Chunks{Used: 90, Total: 96}, Disks: []kernel.Disk{{Size: 2 * gibibyte, Allocated: 2 * gibibyte}}}
	if !crowded(s) {
		t.Error("full, and it is not crowded")
	}
	s.Disks[0].Allocated = gibibyte
	if crowded(s) {
		t.Error("there is room for more chunks")
	}
	s.Disks[0].Allocated, s.Metadata.Used = 2*gibibyte, 48
	if crowded(s) {
		t.Error("there is room in the chunks")
	}
}

// A copy keeps what its source wrote, and the source may be overwritten all the same. When the
// source is deleted, the kernel tells what is still kept of it.
func TestWhatCopiesKeepIsChargedOnce(t *testing.T) {
	const m = 1 << 20
	volume := func(id uint64, size, taken int64, pins map[uint64]int64) *entry {
		return &entry{record: record{Size: size, Pins: pins, Subvolume: kernel.Subvolume{ID: id}}, taken: taken}
	}
	u := &facts{total: 1024 * m, volumes: map[string]*entry{"pvc-1": volume(256, 64*m, 100*m, nil)}, snapshots: map[string]*entry{}, trash: map[string]*entry{}}
	u.space.Data.Used = 100 * m
	check := func(when string, foreign, free int64) {
		t.Helper()
		if p := u.figures(u.tally()); p.Foreign != foreign*m || p.Free != free*m || p.Total != 1024*m {
			t.Errorf("%s: foreign %d, free %d of %d MiB; want %d and %d", when, p.Foreign/m, p.Free/m, p.Total/m, foreign, free)
		}
	}
	check("more is taken than promised", 36, 1024-64-36)
	snapshot := volume(257, 64*m, 0, map[uint64]int64{256: 60 * m})
	snapshot.Volume = "pvc-1"
	u.snapshots["snap-1"] = snapshot
	check("a snapshot keeps it", 0, 1024-64-60)
	u.volumes["pvc-2"] = volume(258, 32*m, 0, map[uint64]int64{256: 60 * m})
	check("so does a copy", 60, 1024-64-60-60-32)
	u.trash["pvc-1"] = u.volumes["pvc-1"]
	delete(u.volumes, "pvc-1")
	check("the volume is being removed", 36, 1024-64-36-32)
	u.trash["snap-1"] = u.snapshots["snap-1"] // which takes nothing by itself
	delete(u.snapshots, "snap-1")
	check("so is the snapshot", 36, 1024-64-36-32)
	delete(u.trash, "snap-1")
	delete(u.trash, "pvc-1")
	u.space.Data.Used = 60 * m
	check("it is gone", 60, 1024-60-32)
	u.total = 80 * m
	if p := u.figures(u.tally()); p.Free != 0 || p.Total != 92*m {
		t.Errorf("with more promised than there is: %+v", p)
	}
}
