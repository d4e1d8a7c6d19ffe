package group

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
)

var (
	planner = Planner{Tool: Tool{Program: "lvm"}, Now: noon}
	vg      = provision.PoolRef{Type: provision.LVM, Name: "vg"}
)

const mib = int64(1 << 20)

// does is the operation of a step; empty without a step.
func does(s *Step) string {
	if s == nil {
		return ""
	}
	return s.Command.Operation
}

// thick is a group with a thick volume pvc-1 of 12 MiB, and with changes to it.
func thick(change ...func(*Facts)) *Facts {
	g := &Facts{holdings: holdingsOf("vg"), extents: extents{unit: extent, total: 100 * extent}, Pools: ThinPools{}, Account: engine.Account{Read: noon}}
	g.Volumes["pvc-1"] = &volume{carved: carved{size: 12 * mib, filesystem: "ext4", Wipe: provision.WipeZero}}
	for _, c := range change {
		c(g)
	}
	return g
}

func missing(g *Facts) { g.Missing = true }

func silent(g *Facts) { g.Silent = errors.New("no answer") }

func wiping(name string) func(*Facts) {
	return func(g *Facts) { g.Wiping[name] = &Remnant{size: extent} }
}

func others(name string) func(*Facts) { return func(g *Facts) { g.Others[name] = true } }

// copied adds an unfinished copy of pvc-1 to a snapshot, with its cow.
func copied(change ...func(*Facts)) func(*Facts) {
	return func(g *Facts) {
		g.Snapshots["snap-1"] = &snapshot{carved: carved{size: 12 * mib, copying: true}, of: "pvc-1"}
		g.pendingOf("snap-1").Cow = &cow{of: "pvc-1", size: 16 * mib, wipe: provision.WipeZero}
		for _, c := range change {
			c(g)
		}
	}
}

func whole(g *Facts) { g.Snapshots["snap-1"].copying = false }

func broken(g *Facts) { g.Pending["snap-1"].Cow.broken = true }

// aThinPool gives the group a thin pool.
func aThinPool(g *Facts) { g.Pools["pool"] = &ThinPool{size: 80 * mib, zeroing: true} }

func TestAVolumeIsMadeOnlyWhereItIsMissingAndHasRoom(t *testing.T) {
	blank := provision.CreateRequest{ID: "pvc-2", Pool: vg, Size: 5 * mib}
	same := func(change func(*provision.CreateRequest)) provision.CreateRequest {
		r := provision.CreateRequest{ID: "pvc-1", Pool: vg, Size: 12 * mib}
		change(&r)
		return r
	}
	inPool := blank
	inPool.Pool = thinPoolRef
	restore := blank
	restore.Size, restore.Source = 8*mib, provision.Source{Snapshot: "snap-2"}
	inPoolOf := inPool
	inPoolOf.Size, inPoolOf.Source = 12*mib, provision.Source{Volume: "pvc-1"}
	of := blank
	of.Source = provision.Source{Volume: "pvc-1"}
	of.Size = 12 * mib
	large := blank
	large.Size = 400 * mib
	for name, tc := range map[string]struct {
		group   *Facts
		request provision.CreateRequest
		want    error
		there   bool
		size    int64
	}{
		"it is made in whole extents":             {thick(), blank, nil, false, 8 * mib},
		"the group is not known":                  {nil, blank, provision.ErrPoolMissing, false, 0},
		"it is there":                             {thick(), same(func(*provision.CreateRequest) {}), nil, true, 12 * mib},
		"it is there in a group that is missing":  {thick(missing), same(func(*provision.CreateRequest) {}), nil, true, 12 * mib},
		"it is there with another size":           {thick(), same(func(r *provision.CreateRequest) { r.Size = 16 * mib }), provision.ErrConflict, false, 0},
		"it is there in another pool":             {thick(), same(func(r *provision.CreateRequest) { r.Pool = thinPoolRef }), provision.ErrConflict, false, 0},
		"it is there, and not for that pod":       {thick(), same(func(r *provision.CreateRequest) { r.Inline.PodUID = "u" }), provision.ErrConflict, false, 0},
		"it is there, and no copy":                {thick(), same(func(r *provision.CreateRequest) { r.Source.Volume = "pvc-2" }), provision.ErrConflict, false, 0},
		"the group is missing":                    {thick(missing), blank, provision.ErrPoolMissing, false, 0},
		"the tools are silent":                    {thick(silent), blank, provision.ErrUnavailable, false, 0},
		"one of its name is being wiped":          {thick(wiping("pvc-2")), blank, provision.ErrUnavailable, false, 0},
		"another program's has its name":          {thick(others("pvc-2")), blank, provision.ErrConflict, false, 0},
		"the thin pool is not there":              {thick(), inPool, provision.ErrPoolMissing, false, 0},
		"it is made in the thin pool":             {thick(aThinPool), inPool, nil, false, 8 * mib},
		"the pool is full":                        {thick(), large, provision.ErrNoSpace, false, 400 * mib},
		"its source is not there":                 {thick(func(g *Facts) { delete(g.Volumes, "pvc-1") }), of, provision.ErrNotFound, false, 0},
		"its source is damaged":                   {thick(func(g *Facts) { g.Volumes["pvc-1"].health = "partial" }), of, provision.ErrUnavailable, false, 0},
		"its source is a copy that is not whole":  {thick(func(g *Facts) { g.pendingOf("pvc-1") }), of, provision.ErrUnavailable, false, 0},
		"its source is a copy that has to grow":   {thick(func(g *Facts) { g.Volumes["pvc-1"].Growing = true }), of, provision.ErrUnavailable, false, 0},
		"there is no room for its cow besides it": {thick(func(g *Facts) { g.foreign = 100*extent - 24*mib }), of, provision.ErrNoSpace, false, 12 * mib},
		"its source is a snapshot":                {thick(restored("snap-2"), func(g *Facts) { delete(g.Volumes, "pvc-2") }), restore, nil, false, 8 * mib},
		"a thin copy needs no cow": {thick(aThinPool, func(g *Facts) {
			g.Volumes["pvc-1"].Pool, g.Pools["pool"].size = "pool", 24*mib
		}), inPoolOf, nil, false, 12 * mib},
		"its cow has its room already": {
			thick(func(g *Facts) { g.foreign = 100*extent - 24*mib; g.pendingOf("pvc-2") }), of, nil, false, 12 * mib},
		"the metadata area is full": {
			thick(func(g *Facts) { g.Area = area{Size: number(mib), Free: 1} }), blank, provision.ErrNoSpace, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			size, there, err := planner.Creatable(tc.group, tc.request)
			if !errors.Is(err, tc.want) || there != tc.there || size != tc.size {
				t.Errorf("%d bytes, there is %v, %v; want %d, %v, %v", size, there, err, tc.size, tc.there, tc.want)
			}
		})
	}
}

func TestAVolumeIsDeletedOnlyIfNothingNeedsIt(t *testing.T) {
	open := func(g *Facts) { g.Volumes["pvc-1"].open = true }
	for name, tc := range map[string]struct {
		group *Facts
		stale bool
		want  error
		there bool
	}{
		"it is there":                       {thick(), false, nil, true},
		"it is not there":                   {thick(func(g *Facts) { delete(g.Volumes, "pvc-1") }), false, nil, false},
		"the group is not known":            {nil, false, provision.ErrUnavailable, false},
		"the group is missing":              {thick(missing), false, provision.ErrPoolMissing, true},
		"it is being copied":                {thick(copied()), false, provision.ErrInUse, true},
		"another volume is being copied":    {thick(copied(func(g *Facts) { g.Pending["snap-1"].Cow.of = "pvc-0" })), false, nil, true},
		"it is open":                        {thick(open), false, provision.ErrInUse, true},
		"it was open, by an old report":     {thick(open), true, nil, true},
		"another program's snapshot is its": {thick(func(g *Facts) { g.dependents["pvc-1"] = "mine" }), false, provision.ErrInUse, true},
	} {
		t.Run(name, func(t *testing.T) {
			there, err := deletable(tc.group, "pvc-1", !tc.stale)
			if !errors.Is(err, tc.want) || there != tc.there {
				t.Errorf("there is %v, %v", there, err)
			}
			want := map[bool]string{true: "lvremove"}[tc.there && tc.want == nil]
			step, err := planner.Remove(tc.group, "", "pvc-1", !tc.stale)
			if !errors.Is(err, tc.want) || does(step) != want {
				t.Errorf("planned %q, %v", does(step), err)
			}
			want = map[bool]string{true: "lvchange"}[tc.there && tc.want == nil]
			step, err = planner.Mark(tc.group, "pvc-1", !tc.stale)
			if !errors.Is(err, tc.want) || does(step) != want {
				t.Errorf("planned %q, %v", does(step), err)
			}
		})
	}
}

func TestNoChangeIsMadeOfAPoolThatDoesNotAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Facts)
		now    time.Time
		want   error
	}{
		"all is well":                   {func(*Facts) {}, noon, nil},
		"LVM is silent":                 {silent, noon, provision.ErrUnavailable},
		"the name means another group":  {func(g *Facts) { g.Refused = "there are two" }, noon, provision.ErrUnavailable},
		"the thin pool is suspended":    {func(g *Facts) { g.Pools["pool"].Suspended = true }, noon, provision.ErrUnavailable},
		"the thin pool is gone":         {func(g *Facts) { delete(g.Pools, "pool") }, noon, nil},
		"a disk of the group is gone":   {func(g *Facts) { g.problem = "a disk is gone" }, noon, nil},
		"a change just began":           {func(g *Facts) { busy(g) }, noon, nil},
		"a change has run for too long": {func(g *Facts) { busy(g) }, noon.Add(time.Hour), provision.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			if err := thick(aThinPool, tc.change).Answers("pool", tc.now); !errors.Is(err, tc.want) {
				t.Error(err)
			}
		})
	}
}

// busy begins a change of a group at noon.
func busy(g *Facts) {
	e := engine.New(engine.Config[*Facts]{Now: func() time.Time { return noon }})
	e.Lock()
	e.Put(g.Name, g)
	e.Unlock()
	e.Begin(g.Name, "pvc-9")
}

func TestAPoolWithoutRoomForDataSendsVolumesElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		thin string
		mode string
		want error
	}{
		"the pool works":                     {"pool", modeWorks, nil},
		"the pool has no room for data":      {"pool", modeOutOfData, provision.ErrNoSpace},
		"the pool is broken":                 {"pool", modeFailed, provision.ErrUnavailable},
		"the pool is gone":                   {"gone", modeWorks, provision.ErrUnavailable},
		"the group is asked, and not a pool": {"", modeFailed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := thick(aThinPool, func(g *Facts) { g.Pools["pool"].Kernel.mode = tc.mode })
			if err := g.Usable(tc.thin, noon); !errors.Is(err, tc.want) {
				t.Error(err)
			}
		})
	}
}

func TestOnlyCopiesThatCanGoOnAreDue(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Facts)
		want   []string
	}{
		"it is to be filled":                 {copied(), []string{"snap-1"}},
		"its cow is to go":                   {copied(whole), []string{"snap-1"}},
		"it is gone, and its cow is left":    {copied(func(g *Facts) { delete(g.Snapshots, "snap-1") }), []string{"snap-1"}},
		"nothing can be done":                {copied(broken), nil},
		"it is suspended":                    {copied(func(g *Facts) { g.Snapshots["snap-1"].Suspended = true }), nil},
		"its cow is suspended":               {copied(func(g *Facts) { g.Pending["snap-1"].Cow.Suspended = true }), nil},
		"it is filled from a snapshot":       {restored("snap-2"), []string{"pvc-2"}},
		"the snapshot that it is of is gone": {restored("snap-3"), nil},
		"it was just filled, and has no cow": {func(g *Facts) { restored("snap-2")(g); g.Volumes["pvc-2"].copying = false }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := slices.Sorted(maps.Keys(thick(tc.change).Copies())); !slices.Equal(got, tc.want) {
				t.Errorf("due are %q, want %q", got, tc.want)
			}
		})
	}
}

// restored adds a volume that is to be filled from a snapshot. The group has snap-2 alone.
func restored(from string) func(*Facts) {
	return func(g *Facts) {
		g.Snapshots["snap-2"] = &snapshot{carved: carved{size: 8 * mib}, of: "pvc-0"}
		g.Volumes["pvc-2"] = &volume{carved: carved{size: 12 * mib, copying: true}, source: provision.Source{Snapshot: from}}
		g.pendingOf("pvc-2")
	}
}

func TestAFailedTryIsToldOfByWhatItDelays(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Facts)
		want   string
	}{
		"the copy is not whole": {copied(), "cannot be copied"},
		"the copy is whole":     {copied(whole), "cannot be removed"},
	} {
		t.Run(name, func(t *testing.T) {
			g := thick(tc.change)
			if p := g.ViewSnapshot("snap-1").Problem; p != "" {
				t.Errorf("the problem is %q before", p)
			}
			g.Pending["snap-1"].Again(errors.New("a disk failed"), noon, time.Second, time.Minute)
			if p := g.ViewSnapshot("snap-1").Problem; !strings.Contains(p, tc.want) || !strings.Contains(p, "a disk failed") {
				t.Errorf("the problem is %q, want that it %s", p, tc.want)
			}
		})
	}
}

func TestACopyIsFilledFromTheDataThatIsKeptForIt(t *testing.T) {
	larger := func(g *Facts) { g.Volumes["pvc-1"].size = 16 * mib } // another program grew it
	for name, tc := range map[string]struct {
		change func(*Facts)
		id, lv string
		size   int64
		kept   bool
	}{
		"a snapshot, from its cow":                  {copied(), "snap-1", "cow-snap-1", 12 * mib, true},
		"a snapshot of a volume that grew":          {copied(larger), "snap-1", "cow-snap-1", 12 * mib, true},
		"a snapshot whose cow is broken":            {copied(broken), "snap-1", "cow-snap-1", 12 * mib, false},
		"a snapshot whose cow is lost":              {copied(func(g *Facts) { g.Pending["snap-1"].Cow = nil }), "snap-1", "cow-snap-1", 12 * mib, false},
		"a volume, from its snapshot":               {restored("snap-2"), "pvc-2", "snap-2", 8 * mib, false},
		"a volume whose snapshot is gone":           {restored("snap-3"), "pvc-2", "snap-3", 0, false},
		"a volume, from the cow of another":         {cloned, "pvc-2", "cow-pvc-2", 12 * mib, true},
		"a volume, from the cow of a volume gone":   {func(g *Facts) { cloned(g); delete(g.Volumes, "pvc-1") }, "pvc-2", "cow-pvc-2", 0, true},
		"a volume whose cow is lost":                {func(g *Facts) { cloned(g); g.Pending["pvc-2"].Cow = nil }, "pvc-2", "cow-pvc-2", 0, false},
		"a volume that nothing is to be done about": {func(*Facts) {}, "pvc-1", "cow-pvc-1", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := thick(tc.change)
			if lv, size := g.FillsFrom(tc.id); lv != tc.lv || size != tc.size {
				t.Errorf("it is filled from %d bytes of %q, want %d of %q", size, lv, tc.size, tc.lv)
			}
			if err := g.Kept(tc.id); (err == nil) != tc.kept || err != nil && !errors.Is(err, provision.ErrUnavailable) {
				t.Errorf("its data is kept: %v", err)
			}
		})
	}
}

// cloned adds a volume that is to be filled from pvc-1.
func cloned(g *Facts) {
	g.Volumes["pvc-2"] = &volume{carved: carved{size: 12 * mib, copying: true}, source: provision.Source{Volume: "pvc-1"}}
	g.pendingOf("pvc-2").Cow = &cow{of: "pvc-1", size: 16 * mib, wipe: provision.WipeZero}
}
