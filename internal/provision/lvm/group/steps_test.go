package group

import (
	"errors"
	"slices"
	"testing"

	"berth.dev/berth/internal/provision"
)

// learnt takes a step that must be possible, as if LVM had carried it out.
func learnt(t *testing.T, g *Facts) func(s *Step, err error) *Step {
	return func(s *Step, err error) *Step {
		t.Helper()
		if err != nil || s == nil {
			t.Fatalf("planned %q, %v", does(s), err)
		}
		s.Learn(g)
		return s
	}
}

// command checks what a step runs, and for how much metadata it accounts.
func command(t *testing.T, s *Step, writes uint64, words ...string) {
	t.Helper()
	for _, w := range words {
		if !slices.Contains(s.Command.Args, w) {
			t.Errorf("it runs %q without %q", s.Command.Args, w)
		}
	}
	if max(s.Writes, 1) != writes {
		t.Errorf("LVM writes its metadata %d times, want %d", s.Writes, writes)
	}
}

func TestAThickVolumeIsMadeAndFilledFromTheDataThatIsKept(t *testing.T) {
	g := thick()
	take := learnt(t, g)
	blank := provision.CreateRequest{ID: "pvc-2", Pool: vg, Size: 8 * mib, Wipe: provision.WipeZero}
	command(t, take(planner.Create(g, blank)), 1, "lvcreate", "berth.dev/volume=pvc-2")
	if v := g.Volumes["pvc-2"]; v.size != 8*mib || v.copying || !v.Active || v.Wipe != provision.WipeZero || g.Pending["pvc-2"] != nil {
		t.Errorf("it is %+v", v)
	}
	if s, err := planner.Create(g, blank); s != nil || err != nil {
		t.Errorf("planned %q, %v once it is there", does(s), err)
	}

	of := provision.CreateRequest{ID: "pvc-3", Pool: vg, Size: 16 * mib, Source: provision.Source{Volume: "pvc-1"}}
	if _, err := planner.Create(g, of); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("%v without the data to copy", err)
	}
	command(t, take(planner.Cow(g, "pvc-3", "pvc-1")), cowMakes, "berth.dev/cow=pvc-3", "berth.dev/wipe=Zero")
	if left := g.Pending["pvc-3"]; left.Cow.of != "pvc-1" || left.Cow.size < 12*mib || left.Cow.wipe != provision.WipeZero || !left.Due.Equal(noon) {
		t.Errorf("pending is %+v", left)
	}
	command(t, take(planner.Create(g, of)), 1, "berth.dev/copying=pvc-3", "berth.dev/fs=ext4")
	if v := g.Volumes["pvc-3"]; !v.copying || v.Growing || v.filesystem != "ext4" || v.source != of.Source {
		t.Errorf("it is %+v", v)
	}

	g.Snapshots["snap-2"] = &snapshot{carved: carved{size: 8 * mib}}
	take(planner.Create(g, provision.CreateRequest{ID: "pvc-4", Pool: vg, Size: 8 * mib, Source: provision.Source{Snapshot: "snap-2"}}))
	if left := g.Pending["pvc-4"]; left == nil || left.Cow != nil || !left.Due.Equal(noon) || g.Next("pvc-4") != TodoFill {
		t.Errorf("pending is %+v", left)
	}
	take(planner.Whole(g, "pvc-4"))
	if v := g.Volumes["pvc-4"]; g.Pending["pvc-4"] != nil || v.copying || v.readOnly {
		t.Errorf("pending is %+v of %+v", g.Pending["pvc-4"], v)
	}

	missing(g)
	if s, err := planner.Create(g, provision.CreateRequest{ID: "pvc-5", Pool: vg, Size: 8 * mib}); s != nil || !errors.Is(err, provision.ErrPoolMissing) {
		t.Errorf("planned %q, %v in a group that is missing", does(s), err)
	}
	if s, err := planner.SnapshotWhole(g, provision.SnapshotRequest{ID: "snap-5", Volume: "pvc-1"}); s != nil || !errors.Is(err, provision.ErrPoolMissing) {
		t.Errorf("planned %q, %v in a group that is missing", does(s), err)
	}
}

func TestAThinCopyIsExtendedOnlyIfItIsTooSmall(t *testing.T) {
	for name, tc := range map[string]struct {
		size    int64
		growing bool
	}{
		"it is as large as its source": {12 * mib, false},
		"it is to be larger":           {16 * mib, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := thick(aThinPool)
			g.Volumes["pvc-1"].Pool = "pool"
			take := learnt(t, g)
			command(t, take(planner.Create(g, provision.CreateRequest{ID: "pvc-2", Pool: thinPoolRef, Size: tc.size, Source: provision.Source{Volume: "pvc-1"}})), 2, "thin")
			if v := g.Volumes["pvc-2"]; v.Growing != tc.growing || v.copying || v.size != tc.size || g.Pending["pvc-2"] != nil {
				t.Errorf("it is %+v", v)
			}
			grow, err := planner.Grow(g, "pvc-2")
			if err != nil || (grow != nil) != tc.growing {
				t.Fatalf("planned %q, %v", does(grow), err)
			}
			if grow != nil {
				g.Pools["pool"].Suspended = true
				if _, err := planner.Grow(g, "pvc-2"); !errors.Is(err, provision.ErrUnavailable) {
					t.Errorf("%v in a suspended pool", err)
				}
				grow.Learn(g)
			}
			if g.Volumes["pvc-2"].Growing {
				t.Error("it has to grow still")
			}
			delete(g.Volumes, "pvc-2")
			if grow != nil {
				grow.Learn(g)
			}
			if _, err := planner.Grow(g, "pvc-2"); !errors.Is(err, provision.ErrNotFound) {
				t.Errorf("%v of a volume that is gone", err)
			}
		})
	}
}

func TestAVolumeOfAGroupGrowsAndNeverShrinks(t *testing.T) {
	for name, tc := range map[string]struct {
		group *Facts
		size  int64
		want  error
		grown int64
	}{
		"it is to grow":                  {thick(), 14 * mib, nil, 16 * mib},
		"it is as large":                 {thick(), 12 * mib, nil, 0},
		"it is larger":                   {thick(), 4 * mib, nil, 0},
		"it is not there":                {thick(func(g *Facts) { delete(g.Volumes, "pvc-1") }), 16 * mib, provision.ErrNotFound, 0},
		"nothing is known":               {nil, 16 * mib, provision.ErrNotFound, 0},
		"it is being copied":             {thick(copied()), 16 * mib, provision.ErrUnavailable, 0},
		"it is a copy itself":            {thick(func(g *Facts) { g.pendingOf("pvc-1") }), 16 * mib, provision.ErrUnavailable, 0},
		"there is no room":               {thick(), 500 * mib, provision.ErrNoSpace, 0},
		"LVM is silent":                  {thick(silent), 16 * mib, provision.ErrUnavailable, 0},
		"it is smaller than its promise": {thick(func(g *Facts) { g.Volumes["pvc-1"].Growing = true }), 4 * mib, nil, 12 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := planner.Expand(tc.group, provision.ExpandRequest{ID: "pvc-1", Size: tc.size})
			if !errors.Is(err, tc.want) || (s != nil) != (tc.grown > 0) {
				t.Fatalf("planned %q, %v, want %v", does(s), err, tc.want)
			}
			if s == nil {
				return
			}
			command(t, s, 1, "lvextend", bytes(tc.grown), "vg/pvc-1")
			s.Learn(tc.group)
			if v := tc.group.Volumes["pvc-1"]; v.size != tc.grown || v.Growing {
				t.Errorf("it is %+v", v)
			}
			delete(tc.group.Volumes, "pvc-1")
			s.Learn(tc.group)
		})
	}
}

func TestAFilesystemIsRecordedOnceAndNeverAsAnother(t *testing.T) {
	blank := func(g *Facts) { g.Volumes["pvc-1"].filesystem = "" }
	for name, tc := range map[string]struct {
		group      *Facts
		filesystem string
		want       error
		step       bool
	}{
		"none is recorded":    {thick(blank), "ext4", nil, true},
		"it is recorded":      {thick(), "ext4", nil, false},
		"another is recorded": {thick(), "xfs", provision.ErrConflict, false},
		"it is not there":     {thick(func(g *Facts) { delete(g.Volumes, "pvc-1") }), "ext4", provision.ErrNotFound, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := planner.Record(tc.group, "pvc-1", tc.filesystem)
			if !errors.Is(err, tc.want) || (s != nil) != tc.step {
				t.Fatalf("planned %q, %v", does(s), err)
			}
			if s == nil {
				return
			}
			if s.Learn(tc.group); tc.group.Volumes["pvc-1"].filesystem != tc.filesystem {
				t.Error("it is not known")
			}
			delete(tc.group.Volumes, "pvc-1")
			s.Learn(tc.group)
		})
	}
}

func TestARemovalAccountsForWhatLVMWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		thin   string
		writes uint64
	}{
		"thick volumes go at once":    {"", 1},
		"thin ones go one by another": {"pool", 4},
	} {
		t.Run(name, func(t *testing.T) {
			g := thick(copied(whole))
			g.Volumes["pvc-2"] = &volume{}
			g.UUIDs = map[string]string{"pvc-1": mappingUUID("4PBl3Q-KVRL-PgFX-52aC-hYcS-3lFV-eKrDTv", "KiA72X-7WJ0-wgQZ-V69o-HWiz-HHd1-6Nt6Hp")}
			s := planner.Removal(g, tc.thin, "pvc-1", "pvc-2")
			command(t, s, tc.writes, "vg/pvc-1", "vg/pvc-2")
			command(t, s, tc.writes, "--select", `lv_uuid=KiA72X-7WJ0-wgQZ-V69o-HWiz-HHd1-6Nt6Hp || lv_name="pvc-2"`)
			if s.Learn(g); len(g.Volumes) != 0 || len(g.Snapshots) != 1 {
				t.Errorf("%d volumes and %d snapshots are left", len(g.Volumes), len(g.Snapshots))
			}
		})
	}
}

func TestADeletedVolumeIsARemnantUntilItIsWiped(t *testing.T) {
	g := thick()
	g.Volumes["pvc-1"].inline, g.Volumes["pvc-1"].Suspended = provision.Inline{PodUID: "u", Name: "data"}, true
	take := learnt(t, g)
	command(t, take(planner.Mark(g, "pvc-1", true)), 1, "lvchange")
	r := g.Wiping["pvc-1"]
	if g.Find("pvc-1") != nil || r == nil || r.size != 12*mib || r.How != provision.WipeZero || !r.Suspended || r.inline.PodUID != "u" {
		t.Fatalf("the remnant is %+v", r)
	}
	r.Suspended = false
	command(t, take(planner.Wiped(g, "pvc-1", 8*mib)), 1, "berth.dev/wiped=8388608")
	if s, err := planner.Wiped(g, "pvc-1", 8*mib); s != nil || err != nil || r.Wiped != 8*mib {
		t.Errorf("planned %q, %v; %d bytes are wiped", does(s), err, r.Wiped)
	}
	last, err := planner.Wiped(g, "pvc-1", 12*mib)
	if err != nil {
		t.Fatal(err)
	}
	take(planner.RemoveWiped(g, "pvc-1"))
	last.Learn(g)
	g.bury("pvc-1")
	if len(g.Wiping) != 0 {
		t.Errorf("left are %v", g.Wiping)
	}
	if s, err := planner.RemoveWiped(g, "pvc-1"); s != nil || err != nil {
		t.Errorf("planned %q, %v", does(s), err)
	}
	if s, err := planner.Wiped(g, "pvc-1", 4); s != nil || err != nil {
		t.Errorf("planned %q, %v", does(s), err)
	}
}

func TestARemnantWhoseDiskIgnoredAWriteIsWipedAnewUntilItIsRecordedHowFar(t *testing.T) {
	var gone *Facts
	gone.Doubt("pvc-2") // a group that is not known any more
	g := thick(wiping("pvc-2"))
	g.Doubt("pvc-3") // a remnant that is not there any more
	take := learnt(t, g)
	take(planner.Wiped(g, "pvc-2", 2*mib))
	lasts := func(g *Facts, want int64) {
		t.Helper()
		if got := g.Wiping["pvc-2"].Lasting(); got != want {
			t.Errorf("%d bytes last, want %d", got, want)
		}
	}
	lasts(g, 2*mib)
	g.Doubt("pvc-2")
	lasts(g, 0)
	reported := thick(wiping("pvc-2"))
	reported.Wiping["pvc-2"].Wiped = 2 * mib
	reported.Inherit(g)
	lasts(reported, 0)
	take(planner.Wiped(g, "pvc-2", mib))
	lasts(g, mib)
}

func TestARemnantThatOthersUseIsNeitherWipedNorRemoved(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*Facts)
		want    error
		due     bool
		problem bool
	}{
		"it is as it was left":            {func(*Facts) {}, nil, true, false},
		"another program took a snapshot": {func(g *Facts) { g.dependents["pvc-2"] = "mine" }, provision.ErrInUse, true, false},
		"another program gave it a cache": {func(g *Facts) { g.Wiping["pvc-2"].strange = "cache" }, provision.ErrUnavailable, true, false},
		"it is suspended":                 {func(g *Facts) { g.Wiping["pvc-2"].Suspended = true }, nil, false, true},
		"the last try failed":             {func(g *Facts) { g.Wiping["pvc-2"].Again(errors.New("no"), noon, 1, 1) }, nil, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := thick(wiping("pvc-2"), tc.change)
			if there, err := Wipeable(g, "pvc-2"); !there || !errors.Is(err, tc.want) {
				t.Errorf("there is %v, %v", there, err)
			}
			if g.Remains()["pvc-2"] != nil != tc.due {
				t.Errorf("due are %v", g.Remains())
			}
			if left := g.Pool("", noon).Wiping; len(left) != 1 || (left[0].Problem != "") != tc.problem || left[0].Size != extent {
				t.Errorf("it is shown as %+v", left)
			}
		})
	}
}
