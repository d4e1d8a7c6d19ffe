package rules

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

const (
	oneZpool     = "create: pools must name the one zpool that is to be made"
	reservedName = "create: ZFS keeps that name for itself"
	raidzWidth   = "width must be set exactly when layout is RaidZ1 or RaidZ2"
	raidz2Width  = "width: RaidZ2 takes four disks or more"
	layoutStays  = "layout is immutable: make a new PoolClass for another zpool"
	ashiftStays  = "ashift is immutable: make a new PoolClass for another zpool"
	widthStays   = "width is immutable: the vdevs of a zpool stay as they were made"
)

// making makes the class create a zpool.
func making(name string, layout v1alpha1.ZpoolLayout, width int32) func(*v1alpha1.PoolClass) {
	return both(zpools(name), func(c *v1alpha1.PoolClass) {
		c.Spec.ZFS.Create = &v1alpha1.ZpoolCreation{Disks: nvme(nil), Layout: layout, Width: width}
	})
}

func zpoolCreation(change func(*v1alpha1.ZpoolCreation)) func(*v1alpha1.PoolClass) {
	return both(making("tank", v1alpha1.ZpoolMirror, 0), func(c *v1alpha1.PoolClass) { change(c.Spec.ZFS.Create) })
}

var zpoolCreationCases = map[string]struct {
	change  func(*v1alpha1.PoolClass)
	refusal string
}{
	"a stripe":                                 {change: making("tank", v1alpha1.ZpoolStripe, 0)},
	"mirrors":                                  {change: making("tank", v1alpha1.ZpoolMirror, 0)},
	"raidz1 of three":                          {change: making("tank", v1alpha1.ZpoolRaidZ1, 3)},
	"raidz2 of sixteen":                        {change: making("tank", v1alpha1.ZpoolRaidZ2, 16)},
	"raidz1 without a width":                   {change: making("tank", v1alpha1.ZpoolRaidZ1, 0), refusal: raidzWidth},
	"raidz1 of two":                            {change: making("tank", v1alpha1.ZpoolRaidZ1, 2), refusal: "spec.zfs.create.width"},
	"raidz2 of three":                          {change: making("tank", v1alpha1.ZpoolRaidZ2, 3), refusal: raidz2Width},
	"raidz2 of seventeen":                      {change: making("tank", v1alpha1.ZpoolRaidZ2, 17), refusal: "spec.zfs.create.width"},
	"mirrors of three":                         {change: making("tank", v1alpha1.ZpoolMirror, 3), refusal: raidzWidth},
	"a layout that ZFS does not know":          {change: making("tank", "RAID10", 0), refusal: `Unsupported value: "RAID10"`},
	"no layout":                                {change: making("tank", "", 0), refusal: "spec.zfs.create.layout"},
	"a filesystem in a zpool":                  {change: making("tank/berth", v1alpha1.ZpoolMirror, 0), refusal: oneZpool},
	"a zpool with the name of a layout":        {change: making("mirrored", v1alpha1.ZpoolMirror, 0), refusal: reservedName},
	"a zpool with the name of a disk":          {change: making("c0t0", v1alpha1.ZpoolMirror, 0), refusal: reservedName},
	"a zpool with the name log":                {change: making("log", v1alpha1.ZpoolMirror, 0), refusal: reservedName},
	"a zpool with a name that begins with log": {change: making("logs", v1alpha1.ZpoolMirror, 0)},
	"a zpool takes any disk":                   {change: zpoolCreation(func(c *v1alpha1.ZpoolCreation) { c.Disks = v1alpha1.DevicePools{} }), refusal: "spec.zfs.create.disks.paths"},
	"blocks of 512 bytes":                      {change: zpoolCreation(func(c *v1alpha1.ZpoolCreation) { c.Ashift = 9 }), refusal: "spec.zfs.create.ashift"},
	"blocks of 64 KiB":                         {change: zpoolCreation(func(c *v1alpha1.ZpoolCreation) { c.Ashift = 16 })},
	"blocks of 128 KiB":                        {change: zpoolCreation(func(c *v1alpha1.ZpoolCreation) { c.Ashift = 17 }), refusal: "spec.zfs.create.ashift"},
	"two zpools share the same disks": {change: both(making("tank", v1alpha1.ZpoolMirror, 0), func(c *v1alpha1.PoolClass) {
		c.Spec.ZFS.Pools = []string{"tank", "fast"}
	}), refusal: oneZpool},
}

func TestAPoolClassAsksOnlyForZpoolsThatCanBeMade(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range zpoolCreationCases {
		t.Run(name, func(t *testing.T) {
			c := newClass(t, "vg")
			tc.change(c)
			expect(t, env.Client.Create(t.Context(), c), tc.refusal)
		})
	}
}

var zpoolChanges = map[string]struct {
	change  func(*v1alpha1.ZpoolCreation)
	refusal string
}{
	"the class names new disks":    {func(z *v1alpha1.ZpoolCreation) { z.Disks.Paths = []string{"/dev/disk/by-id/ata-*"} }, ""},
	"the class names a new layout": {func(z *v1alpha1.ZpoolCreation) { z.Layout, z.Width = v1alpha1.ZpoolStripe, 0 }, layoutStays},
	"the class names a new width":  {func(z *v1alpha1.ZpoolCreation) { z.Width = 4 }, widthStays},
	"the class names a new ashift": {func(z *v1alpha1.ZpoolCreation) { z.Ashift = 13 }, ashiftStays},
}

func TestHowAZpoolIsMadeHoldsForGood(t *testing.T) {
	env := apitest.Start(t)
	c := newClass(t, "vg")
	making("tank", v1alpha1.ZpoolRaidZ1, 3)(c)
	expect(t, env.Client.Create(t.Context(), c), "")
	if c.Spec.ZFS.Create.Ashift != 12 {
		t.Errorf("its ashift is %d by default", c.Spec.ZFS.Create.Ashift)
	}
	for name, tc := range zpoolChanges {
		t.Run(name, func(t *testing.T) {
			changed := c.DeepCopy()
			tc.change(changed.Spec.ZFS.Create)
			err := env.Client.Update(t.Context(), changed)
			expect(t, err, tc.refusal)
			if err == nil {
				c = changed
			}
		})
	}
}
