package ledger_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"berth.dev/berth/internal/ledger"
)

func TestTheChargeIsTheSpaceThatAVolumeTakesOfItsPool(t *testing.T) {
	raid := func(stripes, mirrors, parity int64) ledger.Layout {
		return ledger.Layout{Stripes: stripes, Mirrors: mirrors, Parity: parity, Metadata: 1}
	}
	for name, test := range map[string]struct {
		kind   ledger.Kind
		layout ledger.Layout
		bytes  int64
		want   int64
	}{
		"a linear volume is rounded up to extents":                        {ledger.Thick, ledger.Layout{}, 9 * mib, 12 * mib},
		"a linear volume of whole extents is not":                         {ledger.Thick, ledger.Layout{}, 8 * mib, 8 * mib},
		"one byte takes one extent":                                       {ledger.Thick, ledger.Layout{}, 1, 4 * mib},
		"stripes are all of one length":                                   {ledger.Thick, ledger.Layout{Stripes: 3}, 16 * mib, 24 * mib},
		"a raid1 of two has two copies, each with an extent of metadata":  {ledger.Thick, raid(0, 2, 0), 8 * mib, 24 * mib},
		"a raid1 of three has three":                                      {ledger.Thick, raid(0, 3, 0), 8 * mib, 36 * mib},
		"a raid5 of two data stripes has three images":                    {ledger.Thick, raid(2, 0, 1), 16 * mib, 36 * mib},
		"a raid6 of three data stripes has five images":                   {ledger.Thick, raid(3, 0, 2), 12 * mib, 40 * mib},
		"a raid10 of two stripes and two mirrors has four images":         {ledger.Thick, raid(2, 2, 0), 16 * mib, 48 * mib},
		"a thin volume takes its virtual size and knows no layout":        {ledger.Thin, raid(2, 2, 0), 9 * mib, 12 * mib},
		"a device is taken whole":                                         {ledger.Device, ledger.Layout{}, 9 * mib, 100 * mib},
		"a volume larger than the device takes more than there is":        {ledger.Device, ledger.Layout{}, 101 * mib, 101 * mib},
		"a slot is a slot whatever the size":                              {ledger.Slots, ledger.Layout{}, 1 << 50, 1},
		"the largest size there is does not overflow":                     {ledger.Thick, raid(1000, 1000, 1000), math.MaxInt64, 1 << 61},
		"the largest size there is does not overflow a linear layout":     {ledger.Thick, ledger.Layout{}, math.MaxInt64, 1 << 61},
		"the largest size there is does not overflow a thin pool's chunk": {ledger.Thin, ledger.Layout{}, math.MaxInt64, 1 << 61},
	} {
		t.Run(name, func(t *testing.T) {
			p := ledger.Pool{Kind: test.kind, Total: 100 * mib, Unit: 4 * mib}
			if got := test.kind.Charge(&p, &ledger.Class{Layout: test.layout}, test.bytes); got != test.want {
				t.Errorf("charge is %d, want %d", got, test.want)
			}
		})
	}
}

func TestLimitIsUpToWhereAPoolMayBeTaken(t *testing.T) {
	pool := func(kind ledger.Kind) ledger.Pool { return ledger.Pool{Kind: kind, Total: 1000, Unit: 1, Media: "ssd"} }
	filled := func(data int64, metadata int) ledger.Pool {
		p := pool(ledger.Thin)
		p.Filled, p.FilledMetadata = data, metadata
		return p
	}
	for name, test := range map[string]struct {
		pool   ledger.Pool
		class  ledger.Class
		want   int64
		reason ledger.Reason
	}{
		"a thick pool to the last byte":                      {pool(ledger.Thick), ledger.Class{}, 1000, ledger.Fits},
		"less the spare":                                     {pool(ledger.Thick), ledger.Class{Spare: 100}, 900, ledger.Fits},
		"less the spare in percent, rounded up":              {ledger.Pool{Kind: ledger.Thick, Total: 999, Unit: 1}, ledger.Class{SparePercent: 10}, 899, ledger.Fits},
		"less both":                                          {pool(ledger.Thick), ledger.Class{Spare: 100, SparePercent: 10}, 800, ledger.Fits},
		"a spare beyond the pool leaves less than nothing":   {pool(ledger.Thick), ledger.Class{Spare: 1500}, -500, ledger.Fits},
		"a thin pool's too, which is not multiplied":         {pool(ledger.Thin), ledger.Class{Spare: 1500, Overprovision: 300}, -500, ledger.PoolFull},
		"over-provisioning is for thin pools":                {pool(ledger.Thick), ledger.Class{Overprovision: 300}, 1000, ledger.Fits},
		"a thin pool promises what it has":                   {pool(ledger.Thin), ledger.Class{}, 1000, ledger.Fits},
		"or more than it has":                                {pool(ledger.Thin), ledger.Class{Overprovision: 250}, 2500, ledger.Fits},
		"but not on its spare":                               {pool(ledger.Thin), ledger.Class{Overprovision: 250, Spare: 200}, 2000, ledger.Fits},
		"a thin pool whose data fill is at the mark is shut": {filled(800, 0), ledger.Class{MaxFill: 80}, 1000, ledger.PoolFull},
		"below it, it is open":                               {filled(799, 0), ledger.Class{MaxFill: 80}, 1000, ledger.Fits},
		"one whose metadata is at the mark is shut":          {filled(0, 80), ledger.Class{MaxFill: 80}, 1000, ledger.PoolFull},
		"one that has filled into the spare is shut":         {filled(900, 0), ledger.Class{Spare: 100}, 900, ledger.PoolFull},
		"one that is full is shut":                           {filled(1000, 0), ledger.Class{}, 1000, ledger.PoolFull},
		"the wrong media shut a pool":                        {pool(ledger.Thick), ledger.Class{Media: "hdd"}, 1000, ledger.OtherMedia},
		"a device keeps no spare":                            {pool(ledger.Device), ledger.Class{Spare: 100}, 1000, ledger.Fits},
		"and may be on the wrong media":                      {pool(ledger.Device), ledger.Class{Media: "hdd"}, 1000, ledger.OtherMedia},
		"slots are counted, with a spare if one is wanted":   {ledger.Pool{Kind: ledger.Slots, Total: 8, Unit: 1}, ledger.Class{Spare: 2}, 6, ledger.Fits},
	} {
		t.Run(name, func(t *testing.T) {
			got, reason := test.pool.Kind.Limit(&test.pool, &test.class)
			if got != test.want || reason != test.reason {
				t.Errorf("limit is %d (%v), want %d (%v)", got, reason, test.want, test.reason)
			}
		})
	}
}

func TestAClassThatMakesNoSenseIsRefusedAndTheOldOneStands(t *testing.T) {
	for name, bad := range map[string]ledger.Class{
		"no name":                      {},
		"a negative spare":             {Name: "fast", Spare: -1},
		"a spare of more than all":     {Name: "fast", SparePercent: 101},
		"a spare of less than none":    {Name: "fast", SparePercent: -1},
		"a fill of less than none":     {Name: "fast", MaxFill: -1},
		"a negative over-provisioning": {Name: "fast", Overprovision: -100},
		"a fill of more than all":      {Name: "fast", MaxFill: 101},
		"a negative number of stripes": {Name: "fast", Layout: ledger.Layout{Stripes: -2}},
		"more mirrors than any disks":  {Name: "fast", Layout: ledger.Layout{Mirrors: 5000}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			if err := c.ObserveClass(bad); err == nil {
				t.Fatal("it was taken")
			}
			c.wantReason(c.fits("p", "n1", claimed("c", 10*gib)), ledger.Fits)
		})
	}
}

func TestAPoolThatMakesNoSenseCountsAsNotReported(t *testing.T) {
	good := volumeGroup("vg0", 10*gib)
	for name, change := range map[string]func(*ledger.Pool){
		"no kind":                        func(p *ledger.Pool) { p.Kind = nil },
		"a negative data fill":           func(p *ledger.Pool) { p.Filled = -1 },
		"a negative metadata fill":       func(p *ledger.Pool) { p.FilledMetadata = -1 },
		"a negative total":               func(p *ledger.Pool) { p.Total = -1 },
		"negative foreign use":           func(p *ledger.Pool) { p.Foreign = -1 },
		"no unit":                        func(p *ledger.Pool) { p.Unit = 0 },
		"an item that takes less than 0": func(p *ledger.Pool) { p.Inventory = []ledger.Item{{Taken: -1}} },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, report("n1", good, volumeGroup("vg1", 2*gib)))
			c.ObserveVolume(volume("c", "n1", "vg0", gib, ledger.Ready))
			bad := good
			change(&bad)
			if err := c.ObserveNode(report("n1", bad, volumeGroup("vg1", 2*gib))); err == nil {
				t.Fatal("it was believed")
			}
			c.wantUsed("n1", "vg0", gib)
			c.wantReason(c.fits("p", "n1", claimed("d", 3*gib)), ledger.NoRoom)
			c.wantReason(c.fits("p", "n1", claimed("d", 2*gib)), ledger.Fits)
		})
	}
}

func TestOfPoolsThatAreTooManyOrNamedTwiceTheFirstCount(t *testing.T) {
	for name, test := range map[string]struct {
		pools []ledger.Pool
		last  string // which must not be believed
	}{
		"named twice": {[]ledger.Pool{volumeGroup("vg00", gib), volumeGroup("vg00", 10*gib)}, "vg00"},
		"too many":    {append(pools(256, gib), volumeGroup("last", 10*gib)), "last"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, report("n2"))
			err := c.ObserveNode(report("n1", test.pools...))
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("pool %q", test.last)) {
				t.Errorf("the error is %v", err)
			}
			c.wantReason(c.fits("p", "n1", claimed("c", gib)), ledger.Fits)
			c.wantReason(c.fits("p", "n1", claimed("c", 2*gib)), ledger.NoRoom)
		})
	}
}

func TestEverythingThatAClassSaysCountsOnceItChanges(t *testing.T) {
	thin := ledger.Pool{Name: "thin", Kind: ledger.Thin, Total: 10 * gib, Unit: 4 * mib, Media: "ssd", Filled: 5 * gib, Classes: []string{"fast"}}
	open := ledger.Class{Name: "fast", Overprovision: 200, InlineNamespaces: []string{"*"}}
	thick := volumeGroup("vg0", 10*gib)
	for name, test := range map[string]struct {
		pool   ledger.Pool
		change func(*ledger.Class)
	}{
		"the spare":                  {thick, func(c *ledger.Class) { c.Spare = 6 * gib }},
		"the spare in percent":       {thick, func(c *ledger.Class) { c.SparePercent = 60 }},
		"the media":                  {thick, func(c *ledger.Class) { c.Media = "hdd" }},
		"the layout":                 {thick, func(c *ledger.Class) { c.Layout.Mirrors = 3 }},
		"the namespaces":             {thick, func(c *ledger.Class) { c.InlineNamespaces = nil }},
		"the over-provisioning":      {thin, func(c *ledger.Class) { c.Overprovision = 0 }},
		"the fill that closes pools": {thin, func(c *ledger.Class) { c.MaxFill = 50 }},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, report("n1", test.pool))
			c.class(open)
			c.ObserveVolume(volume("x", "n1", "thin", 8*gib, ledger.Ready))
			demand := inline("p", "a", 5*gib)
			c.wantReason(c.fits("p", "n1", demand), ledger.Fits)
			changed := open
			test.change(&changed)
			c.class(changed)
			if c.fits("p", "n1", demand).Fits() {
				t.Error("it fits as before")
			}
		})
	}
}
