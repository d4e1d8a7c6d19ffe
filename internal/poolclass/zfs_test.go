package poolclass

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// tank is a class over a zpool and over a filesystem in another.
func tank(change func(*v1alpha1.ZFSPools)) *v1alpha1.PoolClass {
	p := &v1alpha1.ZFSPools{Pools: []string{"tank", "fast/berth"}, Volblocksize: "16Ki"}
	if change != nil {
		change(p)
	}
	return &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{Provisioner: v1alpha1.ProvisionerZFS, ZFS: p}}
}

func TestAClassSelectsZpoolsByTheirNames(t *testing.T) {
	for pool, want := range map[string]bool{
		"zfs:tank": true, "zfs:fast/berth": true, "zfs:fast": false, "zfs:tank/berth": false, "tank": false, "fast/berth": false,
	} {
		if got := Names(tank(nil), named("ZFS", pool)); got != want {
			t.Errorf("%s: %t", pool, got)
		}
	}
	if Names(tank(nil), named("LVM", "tank")) || Names(tank(nil), named("LVMThin", "fast/berth")) {
		t.Error("it selects a pool of LVM of that name")
	}
}

func TestAZpoolsSpareIsKept(t *testing.T) {
	pool := named("ZFS", "zfs:tank")
	pool.Free = 50 * unit
	c := tank(nil)
	c.Spec.SparePercent = 20
	if got := Room(c, pool); got != 30*unit {
		t.Errorf("room for %d bytes", got)
	}
}

func TestAClassSaysHowZvolsAreKept(t *testing.T) {
	for name, tc := range map[string]struct {
		class *v1alpha1.PoolClass
		want  provision.Tuning
	}{
		"the default":   {tank(nil), provision.Tuning{BlockSize: 16 << 10}},
		"large blocks":  {tank(func(p *v1alpha1.ZFSPools) { p.Volblocksize = "128Ki" }), provision.Tuning{BlockSize: 128 << 10}},
		"a compression": {tank(func(p *v1alpha1.ZFSPools) { p.Compression = "zstd" }), provision.Tuning{BlockSize: 16 << 10, Compression: "zstd"}},
		"small records": {tank(func(p *v1alpha1.ZFSPools) { p.Recordsize = "512" }), provision.Tuning{BlockSize: 16 << 10, RecordSize: 512}},
		"large records": {tank(func(p *v1alpha1.ZFSPools) { p.Recordsize = "1Mi" }), provision.Tuning{BlockSize: 16 << 10, RecordSize: 1 << 20}},
		"a class from before the default existed": {tank(func(p *v1alpha1.ZFSPools) { p.Volblocksize = "" }), provision.Tuning{}},
		"no zpools": {fast(), provision.Tuning{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Tuning(tc.class); got != tc.want {
				t.Errorf("%+v", got)
			}
		})
	}
}
