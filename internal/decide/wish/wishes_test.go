package wish

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/provision"
)

const gib = int64(1 << 30)

// disk is an empty SSD of 100 GiB.
func disk(name string, change ...func(*provision.Pool)) provision.Pool {
	p := provision.Pool{
		PoolRef: provision.PoolRef{Type: provision.Device, Name: "disk:" + name}, Total: 100 * gib, Free: 100 * gib, Unit: 100 * gib,
		Media: provision.MediaSSD, Paths: []string{"/dev/" + name},
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

func used(p *provision.Pool) { p.Problem, p.Free = "it carries an ext filesystem", 0 }

func holding(p *provision.Pool) { p.Volumes, p.Free = []provision.Volume{{ID: "pvc-1"}}, 0 }

// noDisk is a pool that has the device node of a disk, and is none.
func noDisk(name string, change ...func(*provision.Pool)) provision.Pool {
	p := disk(name, change...)
	p.Type = provision.LVM
	return p
}

func pool(kind, name string) provision.Pool {
	return provision.Pool{PoolRef: provision.PoolRef{Type: kind, Name: name}, Total: 10 * gib, Free: 10 * gib, Unit: 4 << 20}
}

// class is a PoolClass of that age in seconds.
func class(name string, age int64, change func(*v1alpha1.PoolClassSpec)) v1alpha1.PoolClass {
	c := v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1000-age, 0))}}
	change(&c.Spec)
	return c
}

func sd(pattern string) v1alpha1.DevicePools {
	return v1alpha1.DevicePools{Paths: []string{"/dev/sd" + pattern}}
}

func group(name, pattern string) func(*v1alpha1.PoolClassSpec) {
	return func(s *v1alpha1.PoolClassSpec) {
		s.LVM = &v1alpha1.LVMPools{VolumeGroups: []string{name}, Create: &v1alpha1.GroupCreation{Disks: sd(pattern)}}
	}
}

// thin asks for a thin pool of that percentage, made of disks if there is a pattern.
func thin(name, pattern string, percent int32) func(*v1alpha1.PoolClassSpec) {
	return func(s *v1alpha1.PoolClassSpec) {
		s.LVMThin = &v1alpha1.LVMThinPools{ThinPools: []string{name}, Create: &v1alpha1.ThinPoolCreation{SizePercent: percent}}
		if pattern != "" {
			s.LVMThin.Create.Disks = new(sd(pattern))
		}
	}
}

func extended(at, by int32, names ...string) func(*v1alpha1.PoolClassSpec) {
	return func(s *v1alpha1.PoolClassSpec) {
		s.LVMThin = &v1alpha1.LVMThinPools{ThinPools: names, AutoExtend: &v1alpha1.ThinPoolExtension{AtPercent: at, ByPercent: by}}
	}
}

func whole(pattern string) func(*v1alpha1.PoolClassSpec) {
	return func(s *v1alpha1.PoolClassSpec) { s.Devices = new(sd(pattern)) }
}

// line is a wish in a form that is easy to read.
func line(w Wish) string {
	parts := []string{w.Class, w.Pool.Name}
	if len(w.Disks) > 0 {
		parts = append(parts, "of "+strings.Join(w.Disks, ","))
	}
	if w.SizePercent > 0 {
		parts = append(parts, fmt.Sprintf("%d%%", w.SizePercent))
	}
	if w.Extension != (provision.Extension{}) {
		parts = append(parts, fmt.Sprintf("at %d by %d", w.Extension.At, w.Extension.By))
	}
	if w.Verb == decide.Refuse {
		parts = append(parts, "refused: "+w.Reason)
	}
	for _, r := range w.Remarks {
		parts = append(parts, "remark: "+r)
	}
	return strings.Join(parts, " ")
}

var wishCases = map[string]struct {
	classes []v1alpha1.PoolClass
	pools   []provision.Pool
	listed  []string
	want    []string
}{
	"classes that create no group": {
		classes: []v1alpha1.PoolClass{class("a", 1, func(s *v1alpha1.PoolClassSpec) { s.LVM = &v1alpha1.LVMPools{VolumeGroups: []string{"vg0"}} }), class("b", 1, whole("*"))},
		pools:   []provision.Pool{disk("sda")}},
	"a class takes the empty disks that match": {
		classes: []v1alpha1.PoolClass{class("a", 1, group("vg0", "*"))},
		pools:   []provision.Pool{disk("sdb"), disk("sda"), disk("nvme0n1"), disk("sdd", holding), pool("LVM", "other")},
		want:    []string{"a vg0 of disk:sda,disk:sdb"}},
	"a class that names two groups makes neither": {
		classes: []v1alpha1.PoolClass{class("a", 1, func(s *v1alpha1.PoolClassSpec) {
			group("vg0", "*")(s)
			s.LVM.VolumeGroups = []string{"vg0", "vg1"}
		})},
		pools: []provision.Pool{disk("sda")}},
	"a class that names two thin pools makes neither": {
		classes: []v1alpha1.PoolClass{class("t", 1, func(s *v1alpha1.PoolClassSpec) {
			thin("vg0/thin", "*", 80)(s)
			s.LVMThin.ThinPools = []string{"vg0/thin", "vg0/other"}
		})},
		pools: []provision.Pool{disk("sda")}},
	"a class that only names a group hands out no disk": {
		classes: []v1alpha1.PoolClass{
			class("n", 2, func(s *v1alpha1.PoolClassSpec) { s.LVM = &v1alpha1.LVMPools{VolumeGroups: []string{"vg1"}} }), class("a", 1, group("vg0", "*"))},
		pools: []provision.Pool{disk("sda")},
		want:  []string{"a vg0 of disk:sda"}},
	"no group is made of a pool that is no disk": {
		classes: []v1alpha1.PoolClass{class("a", 1, group("vg0", "*"))},
		pools:   []provision.Pool{disk("sda"), noDisk("sdb")},
		want:    []string{"a vg0 of disk:sda"}},
	"a remark says why a group gets no disk": {
		classes: []v1alpha1.PoolClass{class("a", 1, group("vg0", "*"))},
		pools:   []provision.Pool{disk("sda", used)},
		want:    []string{"a vg0 remark: disk:sda (/dev/sda): it carries an ext filesystem"}},
	"the disks of an existing group cause no remark": {
		classes: []v1alpha1.PoolClass{class("a", 1, group("vg0", "*"))},
		pools:   []provision.Pool{pool("LVM", "vg0"), disk("sda", used), disk("sdb")},
		want:    []string{"a vg0 of disk:sdb"}},
	"disks of a size and media": {
		classes: []v1alpha1.PoolClass{class("a", 1, func(s *v1alpha1.PoolClassSpec) {
			group("vg0", "*")(s)
			s.LVM.Create.Disks.Media, s.LVM.Create.Disks.MinSize = v1alpha1.SSD, new(resource.MustParse("50Gi"))
		})},
		pools: []provision.Pool{
			disk("sda"), disk("sdb", func(p *provision.Pool) { p.Media = provision.MediaHDD }), disk("sdc", func(p *provision.Pool) { p.Total = gib }),
		},
		want: []string{"a vg0 of disk:sda"}},
	"a class that selects other nodes": {
		classes: []v1alpha1.PoolClass{class("a", 1, func(s *v1alpha1.PoolClassSpec) {
			group("vg0", "*")(s)
			s.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"disks": "hdd"}}
		})},
		pools: []provision.Pool{disk("sda")}},
	"no group gets a disk that two groups match": {
		classes: []v1alpha1.PoolClass{class("a", 2, group("vg0", "*")), class("b", 1, group("vg1", "b"))},
		pools:   []provision.Pool{disk("sda"), disk("sdb")},
		want: []string{
			"a vg0 of disk:sda remark: disk:sdb (/dev/sdb) is left alone, for it also matches volume group vg1: let it match one",
			"b vg1 remark: disk:sdb (/dev/sdb) is left alone, for it also matches volume group vg0: let it match one",
		}},
	"no group gets a disk that another class gives out whole": {
		classes: []v1alpha1.PoolClass{class("a", 1, group("vg0", "*")), class("w", 1, whole("b"))},
		pools:   []provision.Pool{disk("sda"), disk("sdb")},
		want:    []string{"a vg0 of disk:sda remark: disk:sdb (/dev/sdb) is left alone, for it also matches PoolClass w: let it match one"}},
	"a disk already holds a volume": {
		classes: []v1alpha1.PoolClass{class("a", 1, group("vg0", "*")), class("w", 1, whole("b"))},
		pools:   []provision.Pool{disk("sda"), disk("sdb", holding)},
		want:    []string{"a vg0 of disk:sda"}},
	"two classes that agree about a group": {
		classes: []v1alpha1.PoolClass{class("b", 2, group("vg0", "*")), class("a", 1, group("vg0", "*"))},
		pools:   []provision.Pool{disk("sda")},
		want:    []string{"b vg0 of disk:sda"}},
	"two classes disagree about a group": {
		classes: []v1alpha1.PoolClass{class("a", 1, group("vg0", "b")), class("b", 2, group("vg0", "*"))},
		pools:   []provision.Pool{disk("sda")},
		want:    []string{"b vg0 of disk:sda", "a vg0 refused: Disagrees"}},
	"two disagreeing classes were created in the same second": {
		classes: []v1alpha1.PoolClass{class("b", 1, group("vg0", "b")), class("a", 1, group("vg0", "*"))},
		pools:   []provision.Pool{disk("sda")},
		want:    []string{"a vg0 of disk:sda", "b vg0 refused: Disagrees"}},
	"a thin pool with its group": {
		classes: []v1alpha1.PoolClass{class("t", 1, thin("vg0/thin", "*", 80))},
		pools:   []provision.Pool{disk("sda")},
		want:    []string{"t vg0 of disk:sda", "t vg0/thin 80%"}},
	"a thin pool in the group of another class": {
		classes: []v1alpha1.PoolClass{class("t", 1, thin("vg0/thin", "", 80)), class("a", 1, group("vg0", "*"))},
		pools:   []provision.Pool{disk("sda")},
		want:    []string{"a vg0 of disk:sda", "t vg0/thin 80%"}},
	"thin pools that are extended": {
		classes: []v1alpha1.PoolClass{class("t", 1, extended(70, 10, "vg0/thin", "vg1/thin"))},
		want:    []string{"t vg0/thin at 70 by 10", "t vg1/thin at 70 by 10"}},
	"one class creates a thin pool and another extends the pool": {
		classes: []v1alpha1.PoolClass{class("t", 2, thin("vg0/thin", "", 80)), class("u", 1, extended(70, 10, "vg0/thin"))},
		want:    []string{"t vg0/thin 80% at 70 by 10"}},
	"four classes disagree about a thin pool": {
		classes: []v1alpha1.PoolClass{
			class("t", 4, thin("vg0/thin", "", 80)), class("u", 3, extended(70, 10, "vg0/thin")),
			class("v", 2, thin("vg0/thin", "", 90)), class("w", 1, extended(80, 10, "vg0/thin")),
		},
		want: []string{"t vg0/thin 80% at 70 by 10", "v vg0/thin refused: Disagrees", "w vg0/thin refused: Disagrees"}},
	"a lost group is not made again of other disks": {
		classes: []v1alpha1.PoolClass{class("a", 1, group("vg0", "*"))},
		pools:   []provision.Pool{disk("sda")}, listed: []string{"vg0"},
		want: []string{"a vg0 refused: Missing"}},
	"a lost thin pool and its group are not made again": {
		classes: []v1alpha1.PoolClass{class("t", 1, thin("vg0/thin", "*", 80))},
		pools:   []provision.Pool{disk("sda")}, listed: []string{"vg0/thin"},
		want: []string{"t vg0 refused: Missing", "t vg0/thin 80% refused: Missing"}},
	"a lost thin pool is not made again": {
		classes: []v1alpha1.PoolClass{class("t", 1, thin("vg0/thin", "*", 80))},
		pools:   []provision.Pool{disk("sda"), pool("LVM", "vg0")}, listed: []string{"vg0", "vg0/thin"},
		want: []string{"t vg0 of disk:sda", "t vg0/thin 80% refused: Missing"}},
	"a thin pool that is there is not lost": {
		classes: []v1alpha1.PoolClass{class("t", 1, thin("vg0/thin", "", 80))},
		pools:   []provision.Pool{pool("LVMThin", "vg0/thin")}, listed: []string{"vg0/thin"},
		want: []string{"t vg0/thin 80%"}},
	"a lost group with a similar name does not matter": {
		classes: []v1alpha1.PoolClass{class("a", 1, group("vg0", "*"))},
		pools:   []provision.Pool{disk("sda")}, listed: []string{"vg00"},
		want: []string{"a vg0 of disk:sda"}},
}

func TestPoolClassesBecomeTheWishesOfANode(t *testing.T) {
	for name, tc := range wishCases {
		t.Run(name, func(t *testing.T) {
			facts := Facts{Classes: tc.classes, Labels: map[string]string{"disks": "ssd"}, Pools: tc.pools, Listed: tc.listed}
			var got []string
			for _, w := range Wishes(facts) {
				got = append(got, line(w))
				if w.Verb == decide.Ensure && w.Check() != nil {
					t.Errorf("%+v can never be met: %v", w.PoolWish, w.Check())
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestThePoolsThatClassesHaveMade(t *testing.T) {
	classes := []v1alpha1.PoolClass{
		class("a", 1, group("vg1", "*")), class("t", 1, thin("vg0/thin", "*", 80)), class("u", 1, extended(70, 10, "vg2/thin")),
		class("z", 1, zpool("tank", "*", v1alpha1.ZpoolStripe, 0)),
	}
	if diff := cmp.Diff([]string{"vg0", "vg0/thin", "vg1", "zfs:tank"}, Names(classes, nil)); diff != "" {
		t.Error(diff)
	}
}
