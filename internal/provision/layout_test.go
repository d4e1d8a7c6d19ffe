package provision_test

import (
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
)

func TestAZpoolIsAskedForOnlyInAFormThatZFSCanMake(t *testing.T) {
	mirror := provision.Layout{Redundancy: provision.Mirror, Width: 2, Ashift: 12}
	wish := func(name string, z provision.Layout, disks ...string) provision.PoolWish {
		return provision.PoolWish{Pool: provision.PoolRef{Type: provision.ZFS, Name: name}, Layout: z, Disks: disks}
	}
	searched := func(nodes ...string) provision.PoolWish {
		w := wish("zfs:tank", mirror)
		w.Search = nodes
		return w
	}
	for name, tc := range map[string]struct {
		wish provision.PoolWish
		ok   bool
	}{
		"a mirror": {wish("zfs:tank", mirror, "disk:a", "disk:b"), true},
		"a name that only begins like a reserved name": {wish("zfs:logs", mirror), true},
		"a search":                        {searched("/dev/sda", "/dev/nvme0n1"), true},
		"half a mirror":                   {wish("zfs:tank", mirror, "disk:a", "disk:b", "disk:c"), false},
		"a mirror of the same disk twice": {wish("zfs:tank", mirror, "disk:a", "disk:a"), false},
		"no layout":                       {wish("zfs:tank", provision.Layout{}), false},
		"raidz2 of three":                 {wish("zfs:tank", provision.Layout{Redundancy: provision.RaidZ2, Width: 3, Ashift: 12}), false},
		"raidz1 of seventeen":             {wish("zfs:tank", provision.Layout{Redundancy: provision.RaidZ1, Width: 17, Ashift: 12}), false},
		"blocks of 512 bytes":             {wish("zfs:tank", provision.Layout{Redundancy: provision.Stripe, Width: 1, Ashift: 9}), false},
		"a filesystem":                    {wish("zfs:tank/berth", mirror), false},
		"a name that ZFS reserves":        {wish("zfs:raidz-tank", mirror), false},
		"a name of a disk":                {wish("zfs:c0t0", mirror), false},
		"an option for a name":            {wish("zfs:-f", mirror), false},
		"an option to search":             {searched("-f"), false},
		"a directory to search":           {searched("/dev/../home"), false},
		"a thin pool in a zpool":          {provision.PoolWish{Pool: provision.PoolRef{Type: provision.ZFS, Name: "zfs:tank"}, Layout: mirror, SizePercent: 50}, false},
		"a search for a volume group":     {provision.PoolWish{Pool: provision.PoolRef{Type: provision.LVM, Name: "vg"}, Search: []string{"/dev/sda"}}, false},
		"a search for a filesystem":       {provision.PoolWish{Pool: provision.PoolRef{Type: provision.Btrfs, Name: "btrfs:data"}, Search: []string{"/dev/sda"}}, true},
		"an option to search for one":     {provision.PoolWish{Pool: provision.PoolRef{Type: provision.Btrfs, Name: "btrfs:data"}, Search: []string{"-f"}}, false},
		"a layout of a filesystem":        {provision.PoolWish{Pool: provision.PoolRef{Type: provision.Btrfs, Name: "btrfs:data"}, Layout: mirror}, false},
		"a zpool that is a volume group":  {provision.PoolWish{Pool: provision.PoolRef{Type: provision.LVM, Name: "vg"}, Layout: mirror}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.wish.Check(); (err == nil) != tc.ok || err != nil && !errors.Is(err, provision.ErrInvalid) {
				t.Errorf("got %v", err)
			}
		})
	}
	long := wish("zfs:"+strings.Repeat("a", 100), mirror)
	if err := long.Check(); err != nil {
		t.Errorf("the longest name: %v", err)
	}
}
