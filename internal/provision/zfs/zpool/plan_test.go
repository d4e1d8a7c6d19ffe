package zpool

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
)

const mib = int64(1 << 20)

var noon = time.Unix(1e9, 0)

var planner = Planner{Tool: Tool{Program: "zfs"}, Now: noon}

// tank is a zpool of 1 GiB that is well, with a zvol of 64 MiB.
func tank(change ...func(*Facts)) *Facts {
	z := &Facts{
		Name: "tank", capacity: 1 << 30, available: 1 << 30, Parents: map[string]int64{"tank": 0}, areas: map[string]bool{},
		Others: map[string]bool{}, Health: stateOnline, Account: engine.Account{Read: noon},
		Datasets: map[string]*Dataset{vol: {
			Parent: "tank", area: live, kind: kindVolume, ID: "pvc-1", size: 64 * mib, origin: "-", reserved: true, snapshots: map[string]*Snapshot{},
		}},
	}
	for _, c := range change {
		c(z)
	}
	return z
}

var vol = LiveName("tank", "pvc-1")

// with changes the zvol of a tank.
func with(change func(*Dataset)) func(*Facts) { return func(z *Facts) { change(z.Datasets[vol]) } }

// names are the commands of steps.
func names(steps []Step) (names []string) {
	for _, s := range steps {
		names = append(names, s.Name())
	}
	return names
}

func TestLeftoversStayInAZpoolThatMustNotBeChanged(t *testing.T) {
	short := with(func(d *Dataset) { d.short = true })
	for name, tc := range map[string]struct {
		facts *Facts
		of    string
		steps int
	}{
		"the zpool is well":        {tank(short), vol, 1},
		"nothing is known of it":   {nil, vol, 0},
		"the dataset is gone":      {tank(short), "tank/other", 0},
		"the zpool is unfit":       {tank(short, func(z *Facts) { z.Unfit = "a module is missing" }), vol, 0},
		"the zpool is suspended":   {tank(short, func(z *Facts) { z.Health = stateSuspended }), vol, 0},
		"the zpool is not there":   {tank(short, func(z *Facts) { z.Missing = true }), vol, 0},
		"the dataset has none":     {tank(), vol, 0},
		"the zpool only lost disk": {tank(short, func(z *Facts) { z.Health = stateDegraded }), vol, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if steps := planner.Leftovers(tc.facts, tc.of); len(steps) != tc.steps {
				t.Errorf("planned %q", names(steps))
			}
		})
	}
}

func TestTheSizesOfSnapshotsAreLearntOnceAndOnlyFromTheirOwnRows(t *testing.T) {
	z := tank(with(func(d *Dataset) {
		for _, at := range []string{"snap-2", "snap-1", "snap-3"} {
			d.snapshots[at] = &Snapshot{id: at, size: 64 * mib, allocated: 64 * mib, estimated: at != "snap-3"}
		}
	}))
	if got := z.Unmeasured(); !slices.Equal(got, []string{vol + "@snap-1", vol + "@snap-2"}) {
		t.Errorf("unmeasured are %q", got)
	}
	row := func(at string) Row {
		return Row{name: vol + "@" + at, snapshot: at, volsize: 64 * mib, referenced: 8 * mib}
	}
	rows := []Row{row("snap-1"), row("snap-3")}
	z.LearnSizes(rows)
	for at, want := range map[string]int64{"snap-1": 8 * mib, "snap-2": 64 * mib, "snap-3": 64 * mib} {
		if s := z.Datasets[vol].snapshots[at]; s.id != at || s.size != 64*mib || s.allocated != want {
			t.Errorf("%s is %+v, want %d bytes", at, s, want)
		}
	}
	(*Facts)(nil).LearnSizes(rows) // the zpool is gone meanwhile
}

func TestManySnapshotsAreMeasuredInTheOrderOfTheirNames(t *testing.T) {
	z := tank(with(func(d *Dataset) {
		for n := range 2 * atOnce {
			at := "snap-" + string(rune('a'+n/26)) + string(rune('a'+n%26))
			d.snapshots[at] = &Snapshot{id: at, estimated: true}
		}
	}))
	all := slices.Sorted(maps.Keys(z.Datasets[vol].snapshots))
	if got := z.Unmeasured(); len(got) != atOnce || got[0] != vol+"@"+all[0] || got[atOnce-1] != vol+"@"+all[atOnce-1] {
		t.Errorf("unmeasured are %d: %q", len(got), got)
	}
}

func TestAVolumeGrowsAndNeverShrinks(t *testing.T) {
	short := with(func(d *Dataset) { d.short = true })
	for name, tc := range map[string]struct {
		facts *Facts
		size  int64
		want  error
		steps []string
	}{
		"it is to grow":                         {tank(), 128 * mib, nil, []string{"set volsize=134217728 " + vol, "set refreservation=auto " + vol}},
		"it is as large":                        {tank(), 64 * mib, nil, nil},
		"it is larger":                          {tank(), 32 * mib, nil, nil},
		"it is as large, and its room is short": {tank(short), 64 * mib, nil, []string{"set refreservation=auto " + vol}},
		"it is larger, and its room is short":   {tank(short), 32 * mib, nil, []string{"set refreservation=auto " + vol}},
		"it is not there":                       {tank(with(func(d *Dataset) { d.ID = "pvc-2" })), 64 * mib, provision.ErrNotFound, nil},
		"there is no room":                      {tank(), 1 << 30, provision.ErrNoSpace, nil},
		"the zpool is degraded":                 {tank(func(z *Facts) { z.Health = stateDegraded }), 128 * mib, provision.ErrUnavailable, nil},
	} {
		t.Run(name, func(t *testing.T) {
			steps, err := planner.Expand(tc.facts, provision.ExpandRequest{ID: "pvc-1", Size: tc.size}, tc.size)
			if !errors.Is(err, tc.want) || !slices.Equal(names(steps), tc.steps) {
				t.Errorf("%v, planned %q, want %v, %q", err, names(steps), tc.want, tc.steps)
			}
		})
	}
}

func TestAFilesystemIsRecordedOnceAndNeverAsAnother(t *testing.T) {
	recorded := with(func(d *Dataset) { d.Filesystem = "ext4" })
	for name, tc := range map[string]struct {
		facts *Facts
		want  error
		steps []string
	}{
		"none is recorded":      {tank(), nil, []string{"set berth.dev:fs=ext4 " + vol}},
		"it is recorded":        {tank(recorded), nil, nil},
		"another is recorded":   {tank(with(func(d *Dataset) { d.Filesystem = "xfs" })), provision.ErrConflict, nil},
		"there is no such zvol": {tank(with(func(d *Dataset) { d.ID = "pvc-2" })), provision.ErrNotFound, nil},
	} {
		t.Run(name, func(t *testing.T) {
			steps, err := planner.Record(tc.facts, "pvc-1", "ext4")
			if !errors.Is(err, tc.want) || !slices.Equal(names(steps), tc.steps) {
				t.Errorf("%v, planned %q, want %v, %q", err, names(steps), tc.want, tc.steps)
			}
		})
	}
}

func TestASnapshotIsTakenOnceOfItsVolumeAndMayFillAsMuch(t *testing.T) {
	taken := func(id string) func(*Facts) {
		return with(func(d *Dataset) { d.snapshots["snap-1"] = &Snapshot{id: id} })
	}
	for name, tc := range map[string]struct {
		facts *Facts
		want  error
		steps int
	}{
		"there is none":                        {tank(), nil, 1},
		"it is taken":                          {tank(taken("snap-1")), nil, 0},
		"another program took one of its name": {tank(taken("")), provision.ErrConflict, 0},
		"it is of another volume":              {tank(taken("snap-1"), with(func(d *Dataset) { d.ID = "pvc-2" })), provision.ErrConflict, 0},
		"the volume is not there":              {tank(with(func(d *Dataset) { d.ID = "pvc-2" })), provision.ErrNotFound, 0},
		"there is no room for as much again":   {tank(with(func(d *Dataset) { d.size = 512 * mib })), provision.ErrNoSpace, 0},
	} {
		t.Run(name, func(t *testing.T) {
			steps, err := planner.Snapshot(tc.facts, provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"})
			if !errors.Is(err, tc.want) || len(steps) != tc.steps {
				t.Fatalf("%v, planned %q", err, names(steps))
			}
			if len(steps) > 0 && (steps[0].Takes != 64*mib || steps[0].Parent != "tank") {
				t.Errorf("it takes %d bytes of %q", steps[0].Takes, steps[0].Parent)
			}
		})
	}
}

// clone is a clone of the snapshot of a tank's zvol.
func clone(z *Facts, id string) string {
	name := LiveName("tank", id)
	z.Datasets[name] = &Dataset{Parent: "tank", area: live, kind: kindVolume, ID: id, origin: vol + "@snap-1", snapshots: map[string]*Snapshot{}}
	return name
}

func TestASnapshotIsForgottenWithItsLastClone(t *testing.T) {
	z := tank(with(func(d *Dataset) { d.snapshots["snap-1"] = &Snapshot{id: "snap-1", size: mib, allocated: mib} }))
	one, two := clone(z, "pvc-2"), clone(z, "pvc-3")
	is := func(there, named bool) {
		t.Helper()
		s := z.Datasets[vol].snapshots["snap-1"]
		if (s != nil) != there || s != nil && (s.id != "") != named {
			t.Errorf("the snapshot is %+v", s)
		}
	}
	is(true, true)
	planner.DropStep(z, vol, "snap-1").Learn(z)
	is(true, false)
	for _, name := range []string{one, two} {
		is(true, false)
		planner.destroyStep(z, name).Learn(z)
	}
	is(false, false)
	three := clone(z, "pvc-4") // of a snapshot that the report did not show
	planner.destroyStep(z, three).Learn(z)

	z.Datasets[vol].snapshots["snap-1"] = &Snapshot{id: "snap-1"}
	four := clone(z, "pvc-5")
	planner.destroyStep(z, four).Learn(z)
	is(true, true)
	planner.DropStep(z, vol, "snap-1").Learn(z)
	is(false, false)
	planner.destroyStep(z, vol).Learn(z)
	if len(z.Datasets) != 0 {
		t.Errorf("it holds %d datasets", len(z.Datasets))
	}
}
