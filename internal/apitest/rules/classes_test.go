package rules

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

const (
	lvmNeeded            = "lvm must be set exactly when provisioner is LVM"
	spareNotNegative     = "spare must be a whole number of bytes, zero or more"
	thinNeeded           = "lvmThin must be set exactly when provisioner is LVMThin"
	devicesNeeded        = "devices must be set exactly when provisioner is Device"
	diskHasNoSpare       = "a disk is handed out whole: it has no spare"
	poolNotADirectory    = "thinPools: . and .. are no names of LVM"
	groupNotADirectory   = "volumeGroups: . and .. are no volume groups"
	provisionerImmutable = "provisioner is immutable: make a new PoolClass"
)

func newClass(t *testing.T, groups ...string) *v1alpha1.PoolClass {
	return &v1alpha1.PoolClass{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(v1alpha1.VolumeName(t.Name()))},
		Spec:       v1alpha1.PoolClassSpec{Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: groups}},
	}
}

func spare(size string) func(*v1alpha1.PoolClass) {
	return func(c *v1alpha1.PoolClass) {
		q := resource.MustParse(size)
		c.Spec.Spare = &q
	}
}

func percent(n int32) func(*v1alpha1.PoolClass) {
	return func(c *v1alpha1.PoolClass) { c.Spec.SparePercent = n }
}

func groups(names ...string) func(*v1alpha1.PoolClass) {
	return func(c *v1alpha1.PoolClass) { c.Spec.LVM.VolumeGroups = names }
}

func wipe(policy v1alpha1.WipePolicy) func(*v1alpha1.PoolClass) {
	return func(c *v1alpha1.PoolClass) { c.Spec.LVM.Wipe = policy }
}

// thin makes the class one over thin pools, disks one over whole disks.
func thin(names ...string) func(*v1alpha1.PoolClass) {
	return func(c *v1alpha1.PoolClass) {
		c.Spec.Provisioner, c.Spec.LVM, c.Spec.LVMThin = v1alpha1.ProvisionerLVMThin, nil, &v1alpha1.LVMThinPools{ThinPools: names}
	}
}

func disks(paths ...string) func(*v1alpha1.PoolClass) {
	return func(c *v1alpha1.PoolClass) {
		c.Spec.Provisioner, c.Spec.LVM, c.Spec.Devices = v1alpha1.ProvisionerDevice, nil, &v1alpha1.DevicePools{Paths: paths}
	}
}

func inlineIn(namespaces ...string) func(*v1alpha1.PoolClass) {
	return func(c *v1alpha1.PoolClass) {
		c.Spec.InlineVolumes = &v1alpha1.InlineVolumes{Namespaces: append([]string{}, namespaces...)}
	}
}

func thinly(change func(*v1alpha1.LVMThinPools)) func(*v1alpha1.PoolClass) {
	return both(thin("vg/thin"), func(c *v1alpha1.PoolClass) { change(c.Spec.LVMThin) })
}

func device(change func(*v1alpha1.DevicePools)) func(*v1alpha1.PoolClass) {
	return both(disks("/dev/sdb"), func(c *v1alpha1.PoolClass) { change(c.Spec.Devices) })
}

func both(first, second func(*v1alpha1.PoolClass)) func(*v1alpha1.PoolClass) {
	return func(c *v1alpha1.PoolClass) { first(c); second(c) }
}

var classCases = map[string]struct {
	change  func(*v1alpha1.PoolClass)
	refusal string
}{
	"a class over volume groups":                    {change: groups("vg0", "data_1+x.y-z")},
	"a class that keeps some spare":                 {change: spare("10Gi")},
	"a class that keeps no spare":                   {change: spare("0")},
	"a class that keeps a tenth":                    {change: percent(10)},
	"a negative percentage of spare":                {change: percent(-1), refusal: "spec.sparePercent"},
	"a spare of more than 100 percent":              {change: percent(101), refusal: "spec.sparePercent"},
	"a negative spare":                              {change: spare("-1"), refusal: spareNotNegative},
	"patterns of volume groups":                     {change: groups("vg-*", "data?")},
	"a pattern with a set of characters":            {change: groups("vg[0-9]"), refusal: "spec.lvm.volumeGroups[0]"},
	"inline volumes in two namespaces":              {change: inlineIn("shop", "build-1")},
	"inline volumes in all namespaces":              {change: inlineIn("*")},
	"inline volumes in no namespace":                {change: inlineIn(), refusal: "spec.inlineVolumes.namespaces"},
	"inline volumes in a pattern of namespaces":     {change: inlineIn("shop-*"), refusal: "spec.inlineVolumes.namespaces[0]"},
	"no volume group":                               {change: groups(), refusal: "spec.lvm.volumeGroups"},
	"the current directory":                         {change: groups("."), refusal: groupNotADirectory},
	"the parent directory":                          {change: groups("vg", ".."), refusal: groupNotADirectory},
	"an option in disguise":                         {change: groups("-f"), refusal: "spec.lvm.volumeGroups[0]"},
	"a path":                                        {change: groups("vg/lv"), refusal: "spec.lvm.volumeGroups[0]"},
	"a name longer than LVM allows":                 {change: groups(strings.Repeat("v", 128)), refusal: "spec.lvm.volumeGroups[0]"},
	"the class names a volume group twice":          {change: groups("vg", "vg"), refusal: "Duplicate value"},
	"volumes that are overwritten":                  {change: wipe(v1alpha1.WipeZero)},
	"volumes that are not wiped":                    {change: wipe(v1alpha1.WipeNone)},
	"volumes that are shredded":                     {change: wipe("Shred"), refusal: `Unsupported value: "Shred"`},
	"the class lacks the pools of the provisioner":  {change: func(c *v1alpha1.PoolClass) { c.Spec.LVM = nil }, refusal: lvmNeeded},
	"a class over thin pools":                       {change: thin("vg0/thin", "vg1/thin_2")},
	"thin pools promised tenfold":                   {change: thinly(func(p *v1alpha1.LVMThinPools) { p.OverprovisionPercent = 1000 })},
	"a thin pool promised to less than 100 percent": {change: thinly(func(p *v1alpha1.LVMThinPools) { p.OverprovisionPercent = 99 }), refusal: "spec.lvmThin.overprovisionPercent"},
	"a thin pool promised two hundredfold":          {change: thinly(func(p *v1alpha1.LVMThinPools) { p.OverprovisionPercent = 20000 }), refusal: "spec.lvmThin.overprovisionPercent"},
	"a thin pool filled to 100 percent":             {change: thinly(func(p *v1alpha1.LVMThinPools) { p.MaxFillPercent = 100 })},
	"a thin pool filled beyond 100 percent":         {change: thinly(func(p *v1alpha1.LVMThinPools) { p.MaxFillPercent = 101 }), refusal: "spec.lvmThin.maxFillPercent"},
	"no thin pool":                                  {change: thin(), refusal: "spec.lvmThin.thinPools"},
	"a thin pool without a volume group":            {change: thin("thin"), refusal: "spec.lvmThin.thinPools[0]"},
	"the parent directory as thin pool":             {change: thin("vg/.."), refusal: poolNotADirectory},
	"the parent directory as volume group":          {change: thin("../thin"), refusal: poolNotADirectory},
	"thin pools and volume groups": {change: func(c *v1alpha1.PoolClass) {
		c.Spec.LVMThin = &v1alpha1.LVMThinPools{ThinPools: []string{"vg/thin"}}
	}, refusal: thinNeeded},
	"a class over disks": {change: disks("/dev/disk/by-id/nvme-*", "/dev/sd[b-z]")},
	"a class over disks of some size and media": {change: device(func(d *v1alpha1.DevicePools) {
		d.MinSize, d.MaxSize, d.Media = new(resource.MustParse("1Ti")), new(resource.MustParse("2Ti")), v1alpha1.HDD
	})},
	"no disk":                                        {change: disks(), refusal: "spec.devices.paths"},
	"a file as a disk":                               {change: disks("/home/*"), refusal: "spec.devices.paths[0]"},
	"the smallest disk has half a byte":              {change: device(func(d *v1alpha1.DevicePools) { d.MinSize = new(resource.MustParse("0.5")) }), refusal: "minSize must be a whole number of bytes"},
	"the largest disk has half a byte":               {change: device(func(d *v1alpha1.DevicePools) { d.MaxSize = new(resource.MustParse("0.5")) }), refusal: "maxSize must be a whole number of bytes"},
	"an unknown media":                               {change: device(func(d *v1alpha1.DevicePools) { d.Media = "Tape" }), refusal: `Unsupported value: "Tape"`},
	"a class over disks keeps spare bytes":           {change: both(disks("/dev/sdb"), spare("1Gi")), refusal: diskHasNoSpare},
	"a class over disks keeps a percentage of spare": {change: both(disks("/dev/sdb"), percent(1)), refusal: diskHasNoSpare},
	"the class lacks the disks of the provisioner":   {change: both(disks("/dev/sdb"), func(c *v1alpha1.PoolClass) { c.Spec.Devices = nil }), refusal: devicesNeeded},
	"an unknown provisioner":                         {change: func(c *v1alpha1.PoolClass) { c.Spec.Provisioner = "Tape" }, refusal: `Unsupported value: "Tape"`},
}

func TestAPoolClassIsCreatedOnlyInAFormThatCanBeServed(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range classCases {
		t.Run(name, func(t *testing.T) {
			c := newClass(t, "vg")
			tc.change(c)
			expect(t, env.Client.Create(t.Context(), c), tc.refusal)
		})
	}
}

var classChanges = map[string]struct {
	change  func(*v1alpha1.PoolClass)
	refusal string
}{
	"a second volume group":  {change: groups("vg", "vg1")},
	"a new way of wiping":    {change: wipe(v1alpha1.WipeNone)},
	"a new provisioner":      {change: thin("vg/thin"), refusal: provisionerImmutable},
	"disks instead of pools": {change: disks("/dev/sdb"), refusal: provisionerImmutable},
}

func TestAPoolClassKeepsItsProvisioner(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range classChanges {
		t.Run(name, func(t *testing.T) {
			c := newClass(t, "vg")
			expect(t, env.Client.Create(t.Context(), c), "")
			tc.change(c)
			expect(t, env.Client.Update(t.Context(), c), tc.refusal)
		})
	}
}

func TestDeletedVolumesAreWipedUnlessAPoolClassSaysOtherwise(t *testing.T) {
	env := apitest.Start(t)
	c := newClass(t, "vg")
	expect(t, env.Client.Create(t.Context(), c), "")
	if c.Spec.LVM.Wipe != v1alpha1.WipeDiscard {
		t.Errorf("wiped by %q", c.Spec.LVM.Wipe)
	}
}
