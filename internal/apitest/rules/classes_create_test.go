package rules

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

const (
	oneGroup       = "create: volumeGroups must name the one volume group that is to be made"
	onePool        = "create: thinPools must name the one thin pool that is to be made"
	closedBefore   = "autoExtend: a pool that is extended at more than maxFillPercent is closed before"
	diskIsNoFile   = "disks.paths[0]"
	partOfAByte    = "minSize must be a whole number of bytes"
	percentOfGroup = "spec.lvmThin.create.sizePercent"
)

// creating makes the class create the volume groups from disks.
func creating(groups []string, disks v1alpha1.DevicePools) func(*v1alpha1.PoolClass) {
	return func(c *v1alpha1.PoolClass) {
		c.Spec.LVM.VolumeGroups, c.Spec.LVM.Create = groups, &v1alpha1.GroupCreation{Disks: disks}
	}
}

func nvme(change func(*v1alpha1.DevicePools)) v1alpha1.DevicePools {
	d := v1alpha1.DevicePools{Paths: []string{"/dev/disk/by-id/nvme-*"}}
	if change != nil {
		change(&d)
	}
	return d
}

func thinCreation(change func(*v1alpha1.ThinPoolCreation)) func(*v1alpha1.PoolClass) {
	return thinly(func(p *v1alpha1.LVMThinPools) {
		p.Create = &v1alpha1.ThinPoolCreation{}
		change(p.Create)
	})
}

func extension(at, by, maxFill int32) func(*v1alpha1.PoolClass) {
	return thinly(func(p *v1alpha1.LVMThinPools) {
		p.AutoExtend, p.MaxFillPercent = &v1alpha1.ThinPoolExtension{AtPercent: at, ByPercent: by}, maxFill
	})
}

var creationCases = map[string]struct {
	change  func(*v1alpha1.PoolClass)
	refusal string
}{
	"a volume group of NVMe disks": {change: creating([]string{"vg"}, nvme(nil))},
	"a volume group of large SSDs": {change: creating([]string{"vg"}, nvme(func(d *v1alpha1.DevicePools) {
		d.MinSize, d.Media = new(resource.MustParse("1Ti")), v1alpha1.SSD
	}))},
	"two volume groups share the same disks": {change: creating([]string{"vg", "vg1"}, nvme(nil)), refusal: oneGroup},
	"a pattern names the volume group":       {change: creating([]string{"vg*"}, nvme(nil)), refusal: oneGroup},
	"a volume group takes any disk":          {change: creating([]string{"vg"}, v1alpha1.DevicePools{}), refusal: "spec.lvm.create.disks.paths"},
	"a volume group takes files as disks":    {change: creating([]string{"vg"}, v1alpha1.DevicePools{Paths: []string{"/home/*"}}), refusal: diskIsNoFile},
	"the smallest disk has half a byte": {change: creating([]string{"vg"}, nvme(func(d *v1alpha1.DevicePools) {
		d.MinSize = new(resource.MustParse("0.5"))
	})), refusal: partOfAByte},
	"a thin pool in an existing volume group":          {change: thinCreation(func(*v1alpha1.ThinPoolCreation) {})},
	"a thin pool and the volume group around the pool": {change: thinCreation(func(c *v1alpha1.ThinPoolCreation) { c.Disks = new(nvme(nil)) })},
	"a thin pool fills the volume group":               {change: thinCreation(func(c *v1alpha1.ThinPoolCreation) { c.SizePercent = 100 })},
	"a thin pool exceeds the volume group":             {change: thinCreation(func(c *v1alpha1.ThinPoolCreation) { c.SizePercent = 101 }), refusal: percentOfGroup},
	"a thin pool has a negative size":                  {change: thinCreation(func(c *v1alpha1.ThinPoolCreation) { c.SizePercent = -1 }), refusal: percentOfGroup},
	"one class creates two thin pools": {change: both(thinCreation(func(*v1alpha1.ThinPoolCreation) {}), func(c *v1alpha1.PoolClass) {
		c.Spec.LVMThin.ThinPools = []string{"vg/thin", "vg/thin2"}
	}), refusal: onePool},
	"one class extends two thin pools": {change: both(extension(80, 20, 90), func(c *v1alpha1.PoolClass) {
		c.Spec.LVMThin.ThinPools = []string{"vg/thin", "vg1/thin"}
	})},
	"the class extends the pool at the fill that closes the pool":    {change: extension(90, 20, 90)},
	"the class extends the pool after the fill that closes the pool": {change: extension(91, 20, 90), refusal: closedBefore},
	"the class extends the pool at less than half":                   {change: extension(49, 20, 90), refusal: "spec.lvmThin.autoExtend.atPercent"},
	"the class extends the pool when the pool is full":               {change: extension(100, 20, 100), refusal: "spec.lvmThin.autoExtend.atPercent"},
	"one extension more than doubles the pool":                       {change: extension(80, 101, 90), refusal: "spec.lvmThin.autoExtend.byPercent"},
}

func TestAPoolClassAsksOnlyForPoolsThatCanBeMade(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range creationCases {
		t.Run(name, func(t *testing.T) {
			c := newClass(t, "vg")
			tc.change(c)
			expect(t, env.Client.Create(t.Context(), c), tc.refusal)
		})
	}
}

func TestHowThinPoolsAreMadeAndExtendedNeedNotBeSaid(t *testing.T) {
	env := apitest.Start(t)
	c := newClass(t, "vg")
	thinly(func(p *v1alpha1.LVMThinPools) {
		p.Create, p.AutoExtend = &v1alpha1.ThinPoolCreation{}, &v1alpha1.ThinPoolExtension{}
	})(c)
	expect(t, env.Client.Create(t.Context(), c), "")
	if p := c.Spec.LVMThin; p.Create.SizePercent != 80 || *p.AutoExtend != (v1alpha1.ThinPoolExtension{AtPercent: 80, ByPercent: 20}) {
		t.Errorf("made as %+v, extended as %+v", p.Create, p.AutoExtend)
	}
}
