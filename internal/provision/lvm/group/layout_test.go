package group

import (
	"testing"

	"berth.dev/berth/internal/provision"
)

const (
	extent = int64(4 << 20)
	gib    = int64(1 << 30)
	tib    = 1024 * gib
)

// sized is an empty group of Berth's.
func sized(total int64) *Facts {
	return &Facts{holdings: holdingsOf("vg0"), managed: true, extents: extents{unit: extent, total: total / extent * extent}, Pools: ThinPools{}}
}

func TestAThinPoolIsLaidOutByTheSizeOfItsGroup(t *testing.T) {
	for name, tc := range map[string]struct {
		total   int64
		percent int
		want    layout
	}{
		"a small group":                      {gib, 50, layout{gib / 2, 8 << 20, 64 << 10}},
		"a whole small group":                {gib, 100, layout{gib - 16<<20, 8 << 20, 64 << 10}},
		"a part that is no whole extent":     {10 * extent, 55, layout{5 * extent, 8 << 20, 64 << 10}},
		"a part smaller than an extent":      {10 * extent, 5, layout{0, 8 << 20, 64 << 10}},
		"a group of a hundred GiB":           {100 * gib, 80, layout{80 * gib, 160 << 20, 64 << 10}},
		"half a TiB":                         {tib, 50, layout{tib / 2, gib, 64 << 10}},
		"a pool of a TiB gets larger chunks": {2 * tib, 50, layout{tib, gib, 128 << 10}},
		"a pool beyond the limits of LVM":    {1 << 60, 50, layout{1 << 59, maxMetadata, 1 << 30}},
		"a very large group":                 {1 << 50, 50, layout{1 << 49, gib, 64 << 20}},
	} {
		t.Run(name, func(t *testing.T) {
			g := sized(tc.total)
			got := g.layout(tc.percent)
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if got.takes() > g.total || got.data%g.unit != 0 || got.metadata%g.unit != 0 {
				t.Errorf("%+v does not fit in %d", got, g.total)
			}
		})
	}
}

func TestAThinPoolIsExtendedUntilItIsBelowTheThreshold(t *testing.T) {
	e := provision.Extension{At: 80, By: 20}
	for name, tc := range map[string]struct {
		extents int64
		use     use
		e       provision.Extension
		want    int64
	}{
		"the wish has no extension":    {100, use{99, 100}, provision.Extension{}, 100},
		"the kernel reports no fill":   {100, use{}, e, 100},
		"a fill below the threshold":   {100, use{79, 100}, e, 100},
		"a fill at the threshold":      {100, use{80, 100}, e, 120},
		"a fill that needs two steps":  {100, use{97, 100}, e, 144},
		"a step of at least an extent": {3, use{9, 10}, e, 4},
		"a step of 100 percent":        {100, use{100, 100}, provision.Extension{At: 99, By: 100}, 200},
		"the largest possible pool":    {1 << 38, use{80, 100}, e, 1<<38 + (1<<38)/5},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sized(0).extended(tc.extents*extent, tc.use, tc.e); got != tc.want*extent {
				t.Errorf("extended to %d extents, want %d", got/extent, tc.want)
			}
		})
	}
}

func TestTheMetadataHasRoomToBeExtendedOnce(t *testing.T) {
	p := &ThinPool{Kernel: ThinStatus{metadata: use{1, uint64(100 * extent / metadataBlock)}}}
	g := sized(1000 * extent)
	if got := room(g, p, provision.Extension{At: 80, By: 20}); got != 960*extent {
		t.Errorf("of 1000 extents %d are for data", got/extent)
	}
	if got := room(g, p, provision.Extension{}); got != 1000*extent {
		t.Errorf("of 1000 extents %d are for data of a pool that is not extended", got/extent)
	}
	g.foreign = 990 * extent
	if got := room(g, p, provision.Extension{At: 80, By: 20}); got != 0 {
		t.Errorf("of 10 extents %d are for data", got/extent)
	}
}

func TestAThinPoolThatHasToBeRepairedIsNotExtended(t *testing.T) {
	for name, tc := range map[string]struct {
		pool ThinPool
		fit  bool
	}{
		"a pool that works":                            {ThinPool{Kernel: ThinStatus{mode: modeWorks}}, true},
		"a pool that is not active":                    {ThinPool{}, true},
		"a pool that does not zero":                    {ThinPool{zeroing: false, Kernel: ThinStatus{mode: modeWorks}}, true},
		"a pool that is out of data":                   {ThinPool{Kernel: ThinStatus{mode: modeOutOfData}}, true},
		"a pool that is out of metadata":               {ThinPool{Kernel: ThinStatus{mode: modeReadOnly}}, false},
		"a pool that has failed":                       {ThinPool{Kernel: ThinStatus{mode: modeFailed}}, false},
		"a pool that needs a check":                    {ThinPool{Kernel: ThinStatus{mode: modeWorks, needsCheck: true}}, false},
		"a pool that is out of data and needs a check": {ThinPool{Kernel: ThinStatus{mode: modeOutOfData, needsCheck: true}}, false},
		"a pool without an answer of the kernel":       {ThinPool{Kernel: ThinStatus{Failure: "no answer"}}, false},
		"a pool that lacks a disk":                     {ThinPool{health: "partial", Kernel: ThinStatus{mode: modeWorks}}, false},
		"a pool that cannot be activated":              {ThinPool{Refused: "no module"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if why := tc.pool.unfit("vg0/thin"); (why == "") != tc.fit {
				t.Errorf("unfit for %q", why)
			}
		})
	}
}
