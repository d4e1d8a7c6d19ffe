package wish

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/provision"
)

// The bounds of the disks of a vdev, in bytes.
const (
	leastDisk = 128 << 20
	sameSize  = 16 << 20
)

// zpool has a class make a zpool of the disks that match, with that width of a vdev.
func zpool(name, pattern string, layout v1alpha1.ZpoolLayout, width int32) func(*v1alpha1.PoolClassSpec) {
	return func(s *v1alpha1.PoolClassSpec) {
		s.ZFS = &v1alpha1.ZFSPools{Pools: []string{name}, Create: &v1alpha1.ZpoolCreation{Disks: sd(pattern), Layout: layout, Width: width, Ashift: 12}}
	}
}

func sized(size int64) func(*provision.Pool) { return func(p *provision.Pool) { p.Total = size } }

var zpoolCases = map[string]struct {
	classes []v1alpha1.PoolClass
	pools   []provision.Pool
	listed  []string
	want    []string
}{
	"a stripe takes every disk": {
		classes: []v1alpha1.PoolClass{class("z", 1, zpool("tank", "*", v1alpha1.ZpoolStripe, 0))},
		pools:   []provision.Pool{disk("sdb"), disk("sda", sized(gib)), disk("sdc", used)},
		want:    []string{"z zfs:tank of disk:sda,disk:sdb remark: disk:sdc (/dev/sdc): it carries an ext filesystem"}},
	"mirrors take pairs, and the odd disk waits": {
		classes: []v1alpha1.PoolClass{class("z", 1, zpool("tank", "*", v1alpha1.ZpoolMirror, 0))},
		pools:   []provision.Pool{pool("ZFS", "zfs:tank"), disk("sda"), disk("sdb"), disk("sdc")},
		want:    []string{"z zfs:tank of disk:sda,disk:sdb remark: disk:sdc (/dev/sdc) waits until there are 2 of its size, which is a vdev of Mirror"}},
	"the disks of a vdev are of one size": {
		classes: []v1alpha1.PoolClass{class("z", 1, zpool("tank", "*", v1alpha1.ZpoolMirror, 0))},
		pools:   []provision.Pool{disk("sda", sized(2*gib)), disk("sdb"), disk("sdc", sized(2*gib+sameSize)), disk("sdd", sized(gib))},
		want: []string{"z zfs:tank of disk:sda,disk:sdc remark: disk:sdd (/dev/sdd) waits until there are 2 of its size, which is a vdev of Mirror " +
			"remark: disk:sdb (/dev/sdb) waits until there are 2 of its size, which is a vdev of Mirror"}},
	"a disk of a slightly different size waits": {
		classes: []v1alpha1.PoolClass{class("z", 1, zpool("tank", "a", v1alpha1.ZpoolMirror, 0))},
		pools:   []provision.Pool{pool("ZFS", "zfs:tank"), disk("sda", sized(gib)), disk("sdb", sized(gib+sameSize+1))},
		want:    []string{"z zfs:tank remark: disk:sda (/dev/sda) waits until there are 2 of its size, which is a vdev of Mirror"}},
	"raidz takes whole vdevs": {
		classes: []v1alpha1.PoolClass{class("z", 1, zpool("tank", "*", v1alpha1.ZpoolRaidZ2, 4))},
		pools:   []provision.Pool{disk("sda"), disk("sdb"), disk("sdc"), disk("sdd"), disk("sde")},
		want:    []string{"z zfs:tank of disk:sda,disk:sdb,disk:sdc,disk:sdd remark: disk:sde (/dev/sde) waits until there are 4 of its size, which is a vdev of RaidZ2"}},
	"a disk is too small for ZFS": {
		classes: []v1alpha1.PoolClass{class("z", 1, zpool("tank", "*", v1alpha1.ZpoolStripe, 0))},
		pools:   []provision.Pool{disk("sda", sized(leastDisk-1)), disk("sdb", sized(leastDisk))},
		want:    []string{"z zfs:tank of disk:sdb remark: disk:sda (/dev/sda) is too small for a zpool"}},
	"no zpool gets a disk that a volume group matches": {
		classes: []v1alpha1.PoolClass{class("z", 2, zpool("tank", "*", v1alpha1.ZpoolStripe, 0)), class("a", 1, group("vg0", "b"))},
		pools:   []provision.Pool{disk("sda"), disk("sdb")},
		want: []string{
			"a vg0 remark: disk:sdb (/dev/sdb) is left alone, for it also matches zpool tank: let it match one",
			"z zfs:tank of disk:sda remark: disk:sdb (/dev/sdb) is left alone, for it also matches volume group vg0: let it match one",
		}},
	"two classes want different layouts of a zpool": {
		classes: []v1alpha1.PoolClass{class("z", 1, zpool("tank", "*", v1alpha1.ZpoolStripe, 0)), class("y", 2, zpool("tank", "*", v1alpha1.ZpoolMirror, 0))},
		pools:   []provision.Pool{disk("sda"), disk("sdb")},
		want:    []string{"y zfs:tank of disk:sda,disk:sdb", "z zfs:tank refused: Disagrees"}},
	"two classes want different disks for a zpool": {
		classes: []v1alpha1.PoolClass{class("z", 1, zpool("tank", "a", v1alpha1.ZpoolStripe, 0)), class("y", 2, zpool("tank", "*", v1alpha1.ZpoolStripe, 0))},
		pools:   []provision.Pool{disk("sda"), disk("sdb")},
		want:    []string{"y zfs:tank of disk:sda,disk:sdb", "z zfs:tank refused: Disagrees"}},
	"a lost zpool gets no disk": {
		classes: []v1alpha1.PoolClass{class("z", 1, zpool("tank", "*", v1alpha1.ZpoolStripe, 0))},
		pools:   []provision.Pool{disk("sda")}, listed: []string{"zfs:tank"},
		want: []string{"z zfs:tank"}},
	"a class that names two zpools makes neither": {
		classes: []v1alpha1.PoolClass{class("z", 1, func(s *v1alpha1.PoolClassSpec) {
			zpool("tank", "*", v1alpha1.ZpoolStripe, 0)(s)
			s.ZFS.Pools = []string{"tank", "lake"}
		})},
		pools: []provision.Pool{disk("sda")}},
	"a class names a zpool and does not create the zpool": {
		classes: []v1alpha1.PoolClass{class("z", 1, func(s *v1alpha1.PoolClassSpec) { s.ZFS = &v1alpha1.ZFSPools{Pools: []string{"tank"}} })},
		pools:   []provision.Pool{disk("sda")}},
}

func TestPoolClassesBecomeWishesForZpools(t *testing.T) {
	for name, tc := range zpoolCases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range Wishes(Facts{Classes: tc.classes, Pools: tc.pools, Listed: tc.listed}) {
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

func TestAZpoolIsSearchedForOnUsedDisksThatMatch(t *testing.T) {
	f := Facts{
		Classes: []v1alpha1.PoolClass{class("z", 1, zpool("tank", "[ab]", v1alpha1.ZpoolStripe, 0))},
		Pools:   []provision.Pool{disk("sdb", used), disk("sda"), disk("sdc", used), disk("saa", used), noDisk("sab", used)}, Listed: []string{"zfs:tank"},
	}
	f.Classes[0].Spec.ZFS.Create.Disks.Paths = []string{"/dev/s[ad][ab]"}
	if w := Wishes(f)[0]; !slices.Equal(w.Search, []string{"/dev/saa", "/dev/sdb"}) || w.Disks != nil {
		t.Errorf("asked %+v", w.PoolWish)
	}
	f.Pools = append(f.Pools, pool("ZFS", "zfs:tank"))
	if w := Wishes(f)[0]; w.Search != nil || !slices.Equal(w.Disks, []string{"disk:sda"}) {
		t.Errorf("asked %+v", w.PoolWish)
	}
}

// A pod may have written a zpool of that name into its volume.
func TestAZpoolIsNotSearchedForOnDisksThatAreOrWereVolumes(t *testing.T) {
	wiped := func(p *provision.Pool) { p.Wiping = []provision.Volume{{ID: "pvc-2"}} }
	f := Facts{
		Classes: []v1alpha1.PoolClass{class("z", 1, zpool("tank", "*", v1alpha1.ZpoolStripe, 0))},
		Pools:   []provision.Pool{disk("sda", used), disk("sdb", used, holding), disk("sdc", used, wiped)}, Listed: []string{"zfs:tank"},
	}
	if w := Wishes(f)[0]; !slices.Equal(w.Search, []string{"/dev/sda"}) {
		t.Errorf("asked %+v", w.PoolWish)
	}
}

func TestNoZpoolIsMadeInALayoutThatBerthDoesNotKnow(t *testing.T) {
	w := Wishes(Facts{Classes: []v1alpha1.PoolClass{class("z", 1, zpool("tank", "*", "RaidZ3", 0))}, Pools: []provision.Pool{disk("sda"), disk("sdb")}})[0]
	if len(w.Disks) != 0 || w.Check() == nil {
		t.Errorf("asked %+v, %v", w.PoolWish, w.Check())
	}
}

// manyDisks are more empty disks than one wish may name.
func manyDisks() (disks []provision.Pool) {
	for range provision.MaxDisks + 10 {
		disks = append(disks, disk("sd"+strings.Repeat("x", len(disks)%50)+string(rune('a'+len(disks)/50))))
	}
	return disks
}

func TestAGroupGetsNoMoreDisksThanOneWishMayName(t *testing.T) {
	w := Wishes(Facts{Classes: []v1alpha1.PoolClass{class("a", 1, group("vg0", "*"))}, Pools: manyDisks()})[0]
	if n := len(w.Disks); n != provision.MaxDisks || w.Check() != nil {
		t.Errorf("asked for %d disks, %v", n, w.Check())
	}
}

func TestMoreDisksThanOneWishMayNameAreWholeVdevsToo(t *testing.T) {
	disks := manyDisks()
	w := Wishes(Facts{Classes: []v1alpha1.PoolClass{class("z", 1, zpool("tank", "*", v1alpha1.ZpoolRaidZ1, 5))}, Pools: disks})[0]
	if n := len(w.Disks); n != provision.MaxDisks/5*5 || w.Check() != nil {
		t.Errorf("asked for %d disks, %v", n, w.Check())
	}
}
