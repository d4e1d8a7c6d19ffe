package poolclass

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

const unit = int64(4 << 20)

// vg0 is an empty volume group of 100 units.
var vg0 = named("LVM", "vg0")

func named(kind, name string) provision.Pool {
	return provision.Pool{PoolRef: provision.PoolRef{Type: kind, Name: name}, Total: 100 * unit, Free: 100 * unit, Unit: unit}
}

// nvme is an SSD of 100 units with a link by its identity.
func nvme() provision.Pool {
	p := named("Device", "disk:eui.1")
	p.Unit, p.Media = p.Total, provision.MediaSSD
	p.Paths = []string{"/dev/nvme0n1", "/dev/disk/by-id/nvme-eui.1"}
	return p
}

// disks is a class over the disks that match a pattern.
func disks(pattern string, change func(*v1alpha1.DevicePools)) *v1alpha1.PoolClass {
	d := &v1alpha1.DevicePools{Paths: []string{"/dev/zd*", pattern}}
	if change != nil {
		change(d)
	}
	return &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{Provisioner: v1alpha1.ProvisionerDevice, Devices: d}}
}

// bytes is a size in units.
func bytes(units int64) *resource.Quantity {
	return resource.NewQuantity(units*unit, resource.BinarySI)
}

type option func(*v1alpha1.PoolClass)

// fast is a class over vg0 on all nodes.
func fast(options ...option) *v1alpha1.PoolClass {
	c := &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: []string{"vg9", "vg0"}},
	}}
	for _, o := range options {
		o(c)
	}
	return c
}

// thin is a class over the thin pool vg0/thin.
func thin(overprovision, fill int32) *v1alpha1.PoolClass {
	return &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{Provisioner: v1alpha1.ProvisionerLVMThin, LVMThin: &v1alpha1.LVMThinPools{
		ThinPools: []string{"vg0/thin"}, OverprovisionPercent: overprovision, MaxFillPercent: fill,
	}}}
}

func spare(size string) option {
	return func(c *v1alpha1.PoolClass) { c.Spec.Spare = new(resource.MustParse(size)) }
}

func percent(n int32) option { return func(c *v1alpha1.PoolClass) { c.Spec.SparePercent = n } }

func groups(patterns ...string) option {
	return func(c *v1alpha1.PoolClass) { c.Spec.LVM.VolumeGroups = patterns }
}

func on(s metav1.LabelSelector) option {
	return func(c *v1alpha1.PoolClass) { c.Spec.NodeSelector = &s }
}

func TestAPoolServesAClassThatNamesItOnANodeThatTheClassSelects(t *testing.T) {
	ssd := metav1.LabelSelector{MatchLabels: map[string]string{"ssd": "yes"}}
	unreadable := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "ssd", Operator: "Resembles"}}}
	for name, tc := range map[string]struct {
		class *v1alpha1.PoolClass
		pool  provision.Pool
		node  map[string]string
		want  bool
	}{
		"the class names the pool":                                       {fast(), vg0, nil, true},
		"the class names another pool":                                   {fast(), named("LVM", "vg1"), nil, false},
		"a pattern matches the pool":                                     {fast(groups("vg-*", "vg?")), vg0, nil, true},
		"no pattern matches the pool":                                    {fast(groups("vg-*", "v?")), vg0, nil, false},
		"a pattern matches a pool of another provisioner":                {fast(groups("*")), named("LVMThin", "vg0/thin"), nil, false},
		"a pool of another provisioner has the name":                     {fast(), named("ZFS", "vg0"), nil, false},
		"the class selects the node":                                     {fast(on(ssd)), vg0, map[string]string{"ssd": "yes"}, true},
		"the class does not select the node":                             {fast(on(ssd)), vg0, map[string]string{"ssd": "no"}, false},
		"the class selects by labels, and the node's labels are unknown": {fast(on(ssd)), vg0, nil, false},
		"the selector cannot be read":                                    {fast(on(unreadable)), vg0, map[string]string{"ssd": "yes"}, false},
		"a class without pools":                                          {&v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{Provisioner: "LVM"}}, vg0, nil, false},
		"an empty selector selects all nodes":                            {fast(on(metav1.LabelSelector{})), vg0, nil, true},
		"the class names the thin pool":                                  {thin(100, 90), named("LVMThin", "vg0/thin"), nil, true},
		"the class names another thin pool":                              {thin(100, 90), named("LVMThin", "vg1/thin"), nil, false},
		"the volume group of a thin pool":                                {thin(100, 90), vg0, nil, false},
		"a pattern matches the disk":                                     {disks("/dev/disk/by-id/nvme-*", nil), nvme(), nil, true},
		"a star does not cross a slash":                                  {disks("/dev/*", func(d *v1alpha1.DevicePools) { d.Paths = []string{"/dev/*eui.1"} }), nvme(), nil, false},
		"no pattern matches the disk":                                    {disks("/dev/sd*", nil), nvme(), nil, false},
		"the pattern of disks cannot be read":                            {disks("/dev/[", nil), nvme(), nil, false},
		"a disk of the wanted media":                                     {disks("/dev/nvme*", func(d *v1alpha1.DevicePools) { d.Media = v1alpha1.SSD }), nvme(), nil, true},
		"a disk of the wrong media":                                      {disks("/dev/nvme*", func(d *v1alpha1.DevicePools) { d.Media = v1alpha1.HDD }), nvme(), nil, false},
		"a disk of just the sizes":                                       {disks("/dev/nvme*", func(d *v1alpha1.DevicePools) { d.MinSize, d.MaxSize = bytes(100), bytes(100) }), nvme(), nil, true},
		"a disk that is too small":                                       {disks("/dev/nvme*", func(d *v1alpha1.DevicePools) { d.MinSize = bytes(101) }), nvme(), nil, false},
		"a disk that is too large":                                       {disks("/dev/nvme*", func(d *v1alpha1.DevicePools) { d.MaxSize = bytes(99) }), nvme(), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Serves(tc.class, tc.pool, tc.node); got != tc.want {
				t.Errorf("Serves is %v", got)
			}
		})
	}
}

func TestRoomIsTheFreeSpaceLessTheSpareInWholeUnits(t *testing.T) {
	used := vg0
	used.Free = 30 * unit
	pool := named("LVMThin", "vg0/thin")
	pool.Free, pool.Fill.Data = 30*unit, 60*unit
	broken := vg0
	broken.Problem = "a disk is missing"
	for name, tc := range map[string]struct {
		class *v1alpha1.PoolClass
		pool  provision.Pool
		want  int64
	}{
		"no spare":                             {fast(), vg0, 100 * unit},
		"a spare of a byte takes a unit":       {fast(spare("1")), vg0, 99 * unit},
		"percent count of the total size":      {fast(percent(10)), used, 20 * unit},
		"spare bytes and spare percent add up": {fast(spare("4Mi"), percent(10)), used, 19 * unit},
		"the spare exceeds the free space":     {fast(percent(50)), used, 0},
		"a thin pool promised twice":           {thin(200, 90), pool, 130 * unit},
		"a thin pool that is too full":         {thin(200, 60), pool, 0},
		"a disk":                               {disks("/dev/nvme*", nil), nvme(), 100 * unit},
		"a pool with a problem":                {fast(), broken, 0},
		"an unread pool":                       {fast(), provision.Pool{PoolRef: vg0.PoolRef}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Room(tc.class, tc.pool); got != tc.want {
				t.Errorf("room %d, want %d", got, tc.want)
			}
		})
	}
}

func TestOnlyThickVolumesHaveAPolicyOfWiping(t *testing.T) {
	for want, c := range map[provision.Wipe]*v1alpha1.PoolClass{
		provision.WipeZero: fast(func(c *v1alpha1.PoolClass) { c.Spec.LVM.Wipe = v1alpha1.WipeZero }),
		"":                 disks("/dev/sd*", nil),
	} {
		if got := Wipe(c); got != want {
			t.Errorf("%s: %q, want %q", c.Spec.Provisioner, got, want)
		}
	}
	for api, policy := range map[v1alpha1.WipePolicy]provision.Wipe{
		v1alpha1.WipeDiscard: provision.WipeDiscard, v1alpha1.WipeZero: provision.WipeZero, v1alpha1.WipeNone: provision.WipeNone,
	} {
		if string(api) != string(policy) {
			t.Errorf("the API's %s is %s", api, policy)
		}
	}
}

func TestAClassNamesFilesystemsOfBtrfsByTheirLabels(t *testing.T) {
	c := &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{Provisioner: v1alpha1.ProvisionerBtrfs, Btrfs: &v1alpha1.BtrfsPools{Filesystems: []string{"data", "fast"}}}}
	for name, want := range map[string]bool{"btrfs:data": true, "btrfs:fast": true, "btrfs:other": false} {
		if got := Names(c, named("Btrfs", name)); got != want {
			t.Errorf("%s is named: %v", name, got)
		}
	}
	if Names(c, named("LVM", "data")) {
		t.Error("it names a volume group")
	}
}
