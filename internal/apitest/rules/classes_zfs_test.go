package rules

import (
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

const (
	zfsNeeded  = "zfs must be set exactly when provisioner is ZFS"
	berthsOwn  = "pools: berth-volumes, berth-trash and berth-copies are filesystems that Berth makes for itself"
	poolsField = "spec.zfs.pools"
)

// zpools makes the class one over zpools.
func zpools(names ...string) func(*v1alpha1.PoolClass) {
	return func(c *v1alpha1.PoolClass) {
		c.Spec.Provisioner, c.Spec.LVM, c.Spec.ZFS = v1alpha1.ProvisionerZFS, nil, &v1alpha1.ZFSPools{Pools: names}
	}
}

func zvols(block v1alpha1.Volblocksize, compression string) func(*v1alpha1.PoolClass) {
	return both(zpools("tank"), func(c *v1alpha1.PoolClass) { c.Spec.ZFS.Volblocksize, c.Spec.ZFS.Compression = block, compression })
}

var zpoolCases = map[string]struct {
	change  func(*v1alpha1.PoolClass)
	refusal string
}{
	"zpools":                                      {change: zpools("tank", "fast_2.x-y")},
	"filesystems in zpools":                       {change: zpools("tank/berth", "fast/k8s/berth")},
	"zpools that keep some spare":                 {change: both(zpools("tank"), both(spare("10Gi"), percent(5)))},
	"no zpool":                                    {change: zpools(), refusal: poolsField},
	"the class names a zpool twice":               {change: zpools("tank", "tank"), refusal: "Duplicate value"},
	"the name in a StorageNode":                   {change: zpools("zfs:tank"), refusal: poolsField + "[0]"},
	"a name that begins with digit":               {change: zpools("1tank"), refusal: poolsField + "[0]"},
	"an option":                                   {change: zpools("-r"), refusal: poolsField + "[0]"},
	"an option as the name of a filesystem":       {change: zpools("tank/-r"), refusal: poolsField + "[0]"},
	"a parent directory":                          {change: zpools("tank/.."), refusal: poolsField + "[0]"},
	"a snapshot":                                  {change: zpools("tank@now"), refusal: poolsField + "[0]"},
	"a slash at the end":                          {change: zpools("tank/"), refusal: poolsField + "[0]"},
	"a name too long for clones":                  {change: zpools("tank/" + strings.Repeat("a", 96)), refusal: poolsField + "[0]"},
	"the filesystem in which Berth makes volumes": {change: zpools("tank/berth-volumes"), refusal: berthsOwn},
	"a filesystem below the trash of Berth":       {change: zpools("tank/berth-trash/x"), refusal: berthsOwn},
	"the filesystem of copies":                    {change: zpools("tank/berth-copies"), refusal: berthsOwn},
	"a filesystem whose name only begins like one of Berth's": {change: zpools("tank/berth-volumes2")},
	"the smallest blocks":                           {change: zvols("8Ki", "")},
	"the largest blocks":                            {change: zvols("128Ki", "zstd")},
	"smaller blocks":                                {change: zvols("4Ki", ""), refusal: `Unsupported value: "4Ki"`},
	"blocks of no power of two":                     {change: zvols("24Ki", ""), refusal: `Unsupported value: "24Ki"`},
	"the fastest compression":                       {change: zvols("16Ki", "zstd-fast-1000")},
	"the best compression":                          {change: zvols("16Ki", "zstd-19")},
	"a compression with an unknown level":           {change: zvols("16Ki", "gzip-10"), refusal: "spec.zfs.compression"},
	"a compression that ZFS does not know":          {change: zvols("16Ki", "brotli"), refusal: "spec.zfs.compression"},
	"a compression with a second property":          {change: zvols("16Ki", "lz4,sync=no"), refusal: "spec.zfs.compression"},
	"the class lacks the zpools of the provisioner": {change: both(zpools("tank"), func(c *v1alpha1.PoolClass) { c.Spec.ZFS = nil }), refusal: zfsNeeded},
	"zpools and volume groups":                      {change: func(c *v1alpha1.PoolClass) { c.Spec.ZFS = &v1alpha1.ZFSPools{Pools: []string{"tank"}} }, refusal: zfsNeeded},
}

func TestAPoolClassOverZpoolsIsCreatedOnlyInAFormThatZFSCanServe(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range zpoolCases {
		t.Run(name, func(t *testing.T) {
			c := newClass(t, "vg")
			tc.change(c)
			expect(t, env.Client.Create(t.Context(), c), tc.refusal)
		})
	}
}

func TestHowZvolsAreKeptMayChangeForThoseToCome(t *testing.T) {
	env := apitest.Start(t)
	c := newClass(t, "vg")
	zpools("tank")(c)
	expect(t, env.Client.Create(t.Context(), c), "")
	if c.Spec.ZFS.Volblocksize != "16Ki" || c.Spec.ZFS.Compression != "" {
		t.Errorf("kept as %+v by default", c.Spec.ZFS)
	}
	for name, change := range map[string]func(*v1alpha1.PoolClass){
		"blocks": zvols("64Ki", ""), "compression": zvols("64Ki", "zstd"), "pools": zpools("tank", "fast"),
	} {
		change(c)
		if err := env.Client.Update(t.Context(), c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
