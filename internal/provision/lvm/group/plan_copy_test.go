package group

import (
	"errors"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
)

// While a process of LVM runs, a report may tell the group anew.
func TestAStepOfACopyIsLearntByWhateverIsKnownByThen(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*Facts)
		pending bool
	}{
		"nothing changed":               {func(*Facts) {}, true},
		"the copy is gone":              {func(g *Facts) { delete(g.Snapshots, "snap-1") }, true},
		"the copy and its cow are gone": {func(g *Facts) { g.Pending["snap-1"].Cow = nil; g.discard("snap-1") }, false},
		"it was all done":               {func(g *Facts) { whole(g); delete(g.Pending, "snap-1") }, false},
		"the cow is gone":               {func(g *Facts) { g.Pending["snap-1"].Cow = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := thick(copied())
			s, err := planner.Whole(g, "snap-1")
			if err != nil {
				t.Fatal(err)
			}
			tc.change(g)
			if s.Learn(g); (g.Pending["snap-1"] != nil) != tc.pending {
				t.Errorf("once it is whole, pending is %+v", g.Pending["snap-1"])
			}
		})
	}
	g := thick(copied(whole))
	s, err := planner.Drop(g, "snap-1")
	if err != nil {
		t.Fatal(err)
	}
	g.Pending["snap-1"].Cow = nil
	if s.Learn(g); g.Wiping["cow-snap-1"] != nil {
		t.Error("a cow that is gone is to be wiped")
	}
}

func TestACopyWithoutACowIsPendingUntilItIsWholeOrGone(t *testing.T) {
	g := thick(restored("snap-2"))
	if g.settled("pvc-2"); g.Pending["pvc-2"] == nil {
		t.Error("a copy that is not whole is settled")
	}
	if g.discard("pvc-2"); g.Pending["pvc-2"] != nil {
		t.Error("a copy that is gone is not settled")
	}
	g = thick(copied(whole))
	if g.bury("snap-1"); g.Snapshots["snap-1"] != nil || g.Wiping["snap-1"].size != 12*mib || g.Next("snap-1") != TodoDrop {
		t.Errorf("a deleted snapshot is left as %+v", g.Wiping["snap-1"])
	}
}

func TestTheCowOfAnAttemptBeforeIsNotUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Facts)
		want   error
	}{
		"there is none":                {func(*Facts) {}, nil},
		"a copy is pending":            {func(g *Facts) { g.pendingOf("snap-1") }, provision.ErrUnavailable},
		"its remnant is being wiped":   {wiping("cow-snap-1"), provision.ErrUnavailable},
		"another program has its name": {others("cow-snap-1"), provision.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := planner.Cow(thick(tc.change), "snap-1", "pvc-1"); !errors.Is(err, tc.want) || (s != nil) != (tc.want == nil) {
				t.Errorf("planned %q, %v", does(s), err)
			}
		})
	}
}

func TestASnapshotIsTakenOnlyOfAVolumeThatCanBeRead(t *testing.T) {
	there := copied(whole)
	for name, tc := range map[string]struct {
		group *Facts
		want  error
		there bool
		size  int64
	}{
		"there is none":                       {thick(), nil, false, 12 * mib},
		"nothing is known":                    {nil, provision.ErrNotFound, false, 0},
		"it is there":                         {thick(there), nil, true, 12 * mib},
		"it is there, the group is missing":   {thick(there, missing), nil, true, 12 * mib},
		"it is of another volume":             {thick(there, func(g *Facts) { g.Snapshots["snap-1"].of = "pvc-2" }), provision.ErrConflict, false, 0},
		"the group is missing":                {thick(missing), provision.ErrPoolMissing, false, 0},
		"the volume is not there":             {thick(func(g *Facts) { delete(g.Volumes, "pvc-1") }), provision.ErrNotFound, false, 0},
		"another program has its name":        {thick(others("snap-1")), provision.ErrConflict, false, 0},
		"one of its name is being wiped":      {thick(wiping("snap-1")), provision.ErrUnavailable, false, 0},
		"the volume is damaged":               {thick(func(g *Facts) { g.Volumes["pvc-1"].health = "partial" }), provision.ErrUnavailable, false, 12 * mib},
		"LVM is silent":                       {thick(silent), provision.ErrUnavailable, false, 12 * mib},
		"there is no room for it and its cow": {thick(func(g *Facts) { g.foreign = 100*extent - 24*mib }), provision.ErrNoSpace, false, 12 * mib},
		"the metadata area is full":           {thick(func(g *Facts) { g.Area = area{Size: number(mib), Free: 1} }), provision.ErrNoSpace, false, 12 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			size, there, err := planner.Snapshotable(tc.group, provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"})
			if !errors.Is(err, tc.want) || there != tc.there || size != tc.size {
				t.Errorf("%d bytes, there is %v, %v; want %d, %v, %v", size, there, err, tc.size, tc.there, tc.want)
			}
		})
	}
}

func TestASnapshotOfAThickVolumeIsFilledFromItsCowWhichThenGoes(t *testing.T) {
	for name, wipe := range map[string]provision.Wipe{"old data is wiped": provision.WipeZero, "old data is not wiped": provision.WipeNone} {
		t.Run(name, func(t *testing.T) {
			g := thick(func(g *Facts) { g.Volumes["pvc-1"].Wipe = wipe })
			take, r := learnt(t, g), provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"}
			if _, err := planner.SnapshotWhole(g, r); !errors.Is(err, provision.ErrUnavailable) {
				t.Errorf("%v without the data to copy", err)
			}
			none := func(s *Step, err error) {
				t.Helper()
				if s != nil || err != nil {
					t.Errorf("planned %q, %v", does(s), err)
				}
			}
			none(planner.Whole(g, "snap-1"))
			none(planner.Drop(g, "snap-1"))
			take(planner.Cow(g, "snap-1", "pvc-1"))
			command(t, take(planner.SnapshotWhole(g, r)), 1, "berth.dev/copying=snap-1", "berth.dev/of=pvc-1")
			none(planner.SnapshotWhole(g, r))
			if s := g.Snapshots["snap-1"]; !s.copying || s.Wipe != wipe || !s.taken.Equal(time.Unix(noon.Unix(), 0)) || g.Next("snap-1") != TodoFill {
				t.Errorf("it is %+v, next is %v", s, g.Next("snap-1"))
			}
			none(planner.Drop(g, "snap-1"))
			g.Pending["snap-1"].Again(errors.New("a disk failed"), noon, time.Second, time.Minute)
			take(planner.Whole(g, "snap-1"))
			if s := g.Snapshots["snap-1"]; s.copying || !s.readOnly || g.Next("snap-1") != TodoDrop || g.ViewSnapshot("snap-1").Problem != "" {
				t.Errorf("it is %+v, next is %v", s, g.Next("snap-1"))
			}
			none(planner.Whole(g, "snap-1"))
			drop, writes := take(planner.Drop(g, "snap-1")), uint64(cowMakes)
			if wipe != provision.WipeNone {
				writes = 1
			}
			command(t, drop, writes)
			if r := g.Wiping["cow-snap-1"]; (r != nil) != (wipe != provision.WipeNone) || r != nil && (r.How != wipe || r.size < 12*mib) {
				t.Errorf("the remnant of the cow is %+v", r)
			}
			if len(g.Pending) != 0 {
				t.Errorf("pending is %+v", g.Pending["snap-1"])
			}
			drop.Learn(g) // the facts include it already
			none(planner.Drop(g, "snap-1"))
		})
	}
}

func TestACopyInAGroupThatIsMissingWaits(t *testing.T) {
	for name, plan := range map[string]func(g *Facts) (*Step, error){
		"to be whole":      func(g *Facts) (*Step, error) { return planner.Whole(g, "snap-1") },
		"to lose its cow":  func(g *Facts) (*Step, error) { whole(g); return planner.Drop(g, "snap-1") },
		"to be wiped":      func(g *Facts) (*Step, error) { wiping("pvc-3")(g); return planner.RemoveWiped(g, "pvc-3") },
		"to note the wipe": func(g *Facts) (*Step, error) { wiping("pvc-3")(g); return planner.Wiped(g, "pvc-3", 4) },
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := plan(thick(copied())); s == nil || err != nil {
				t.Errorf("planned %q, %v in a group that is there", does(s), err)
			}
			if s, err := plan(thick(copied(), missing)); s != nil || !errors.Is(err, provision.ErrPoolMissing) {
				t.Errorf("planned %q, %v", does(s), err)
			}
		})
	}
	for _, plan := range []func(*Facts, string) (*Step, error){planner.Whole, planner.Drop, planner.RemoveWiped} {
		if s, err := plan(nil, "snap-1"); s != nil || err != nil {
			t.Errorf("planned %q, %v in a group that is not known", does(s), err)
		}
	}
}

func TestASnapshotOfAThinVolumeIsThereAtOnce(t *testing.T) {
	g := thick(aThinPool)
	g.Volumes["pvc-1"].Pool = "pool"
	r := provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"}
	s := learnt(t, g)(planner.Snapshot(g, r))
	command(t, s, 2, "berth.dev/snapshot=snap-1", "berth.dev/fs=ext4")
	if got := g.Snapshots["snap-1"]; s.Thin != "pool" || got.Pool != "pool" || got.copying || got.Active || got.size != 12*mib || len(g.Pending) > 0 {
		t.Errorf("it is %+v", got)
	}
	if again, err := planner.Snapshot(g, r); again != nil || err != nil {
		t.Errorf("planned %q, %v", does(again), err)
	}
	g.Volumes["pvc-1"].health = "partial"
	if _, err := planner.Snapshot(g, provision.SnapshotRequest{ID: "snap-2", Volume: "pvc-1"}); !errors.Is(err, provision.ErrUnavailable) {
		t.Error(err)
	}
}
