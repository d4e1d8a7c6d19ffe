package provision_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/internal/provision"
)

const unit = int64(4 << 20)

// pool returns a pool of 100 units of which some are promised.
func pool(kind string, promised int64) provision.Pool {
	return provision.Pool{
		PoolRef: provision.PoolRef{Type: kind, Name: "pool"},
		Total:   100 * unit, Free: (100 - promised) * unit, Unit: unit,
	}
}

func filled(p provision.Pool, units int64, metadata int) provision.Pool {
	p.Fill = provision.Fill{Data: units * unit, Metadata: metadata}
	return p
}

func disk(promised int64) provision.Pool {
	p := pool(provision.Device, promised)
	p.Unit = p.Total
	return p
}

func TestRoomIsTheFreeSpaceWithinTheLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		limits provision.Limits
		pool   provision.Pool
		want   int64 // units
	}{
		"a thick pool gives the free space":                               {pool: pool("LVM", 30), want: 70},
		"a spare of a byte takes a unit":                                  {provision.Limits{Spare: 1}, pool("LVM", 30), 69},
		"a spare in percent is of the whole pool":                         {provision.Limits{SparePercent: 10}, pool("LVM", 30), 60},
		"spare bytes and spare percent add up":                            {provision.Limits{Spare: unit, SparePercent: 10}, pool("LVM", 30), 59},
		"a spare beyond the free space leaves no room":                    {provision.Limits{SparePercent: 80}, pool("LVM", 30), 0},
		"a thick pool is never promised twice":                            {provision.Limits{Overprovision: 300}, pool("LVM", 30), 70},
		"a zpool is never promised twice":                                 {provision.Limits{Overprovision: 200}, pool("ZFS", 30), 70},
		"a thin pool is promised once by default":                         {pool: pool("LVMThin", 30), want: 70},
		"a thin pool may be promised twice":                               {provision.Limits{Overprovision: 200}, pool("LVMThin", 130), 70},
		"the spare comes off before over-provisioning":                    {provision.Limits{Overprovision: 200, SparePercent: 10}, pool("LVMThin", 130), 50},
		"a thin pool filled beyond the limit gives no room":               {provision.Limits{Overprovision: 200, MaxFill: 80}, filled(pool("LVMThin", 90), 80, 1), 0},
		"a thin pool with metadata filled beyond the limit gives no room": {provision.Limits{Overprovision: 200, MaxFill: 80}, filled(pool("LVMThin", 90), 1, 80), 0},
		"a thin pool whose data reached the spare gives no room":          {provision.Limits{Overprovision: 200, SparePercent: 30}, filled(pool("LVMThin", 90), 70, 1), 0},
		"a fill below the limit does not matter":                          {provision.Limits{Overprovision: 200, MaxFill: 80}, filled(pool("LVMThin", 90), 79, 79), 110},
		"a disk is given whole":                                           {pool: disk(0), want: 100},
		"a taken disk gives no room":                                      {pool: disk(100)},
		"a pool of an unknown type gives no room":                         {pool: pool("Other", 0)},
		"an unread pool gives no room":                                    {pool: provision.Pool{PoolRef: provision.PoolRef{Type: "LVM"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.limits.Room(tc.pool)
			if got != tc.want*unit {
				t.Errorf("room for %d bytes, want %d units", got, tc.want)
			}
			if err := tc.limits.Admit(tc.pool, got); got > 0 && err != nil {
				t.Errorf("what there is room for is refused: %v", err)
			}
			if err := tc.limits.Admit(tc.pool, got+unit); tc.pool.Unit > 0 && !errors.Is(err, provision.ErrNoSpace) {
				t.Errorf("a unit more: %v, want ErrNoSpace", err)
			}
		})
	}
}

func TestTheLargestLimitsDoNotOverflow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := provision.Limits{
			Spare:         rapid.Int64Range(0, provision.MaxSize).Draw(t, "spare"),
			SparePercent:  rapid.IntRange(0, 100).Draw(t, "percent"),
			Overprovision: rapid.IntRange(0, provision.MaxOverprovision).Draw(t, "overprovision"),
		}
		p := pool("LVM", 0)
		p.Total = rapid.Int64Range(0, provision.MaxSize).Draw(t, "total")
		p.Free = rapid.Int64Range(0, p.Total).Draw(t, "free")
		if got := l.Room(p); got < 0 || got > p.Free {
			t.Fatalf("%+v leaves %d in %+v", l, got, p)
		}
		p.Type = "LVMThin"
		if got := l.Room(p); got < 0 {
			t.Fatalf("%+v leaves %d in %+v", l, got, p)
		}
	})
}
