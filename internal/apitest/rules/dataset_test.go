package rules

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

func records(size v1alpha1.Recordsize) func(*v1alpha1.PoolClass) {
	return both(zpools("tank"), func(c *v1alpha1.PoolClass) { c.Spec.ZFS.Recordsize = size })
}

func TestTheRecordsOfAClassAreOfASizeThatZFSHas(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range map[string]struct {
		size    v1alpha1.Recordsize
		refusal string
	}{
		"the smallest recordsize":              {size: "512"},
		"the recordsize of a database":         {size: "8Ki"},
		"the largest recordsize":               {size: "1Mi"},
		"a recordsize below the smallest":      {size: "256", refusal: `Unsupported value: "256"`},
		"a recordsize above the largest":       {size: "2Mi", refusal: `Unsupported value: "2Mi"`},
		"a recordsize that is no power of two": {size: "24Ki", refusal: `Unsupported value: "24Ki"`},
		"a recordsize without a unit":          {size: "8192", refusal: `Unsupported value: "8192"`},
		"no recordsize":                        {},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClass(t, "vg")
			records(tc.size)(c)
			expect(t, env.Client.Create(t.Context(), c), tc.refusal)
		})
	}
}

func inPool(name string) change {
	return func(v *v1alpha1.Volume) { v.Spec.Replicas[0].Pool = name }
}

const datasetMisplaced = "fsType zfs is for pools of ZFS"

var datasetCases = map[string]struct {
	change  change
	refusal string
}{
	"a dataset in a zpool":                              {change: all(wanted("n1"), fsType(v1alpha1.Dataset), inPool("zfs:tank/berth"))},
	"a dataset without a place yet":                     {change: all(wanted(), fsType(v1alpha1.Dataset))},
	"ext4 in a zpool":                                   {change: all(wanted("n1"), inPool("zfs:tank"))},
	"a dataset in a volume group":                       {change: all(wanted("n1"), fsType(v1alpha1.Dataset), inPool("vg0")), refusal: datasetMisplaced},
	"a dataset with a second replica in a volume group": {change: all(wanted("n1", "n2"), fsType(v1alpha1.Dataset), inPool("zfs:tank")), refusal: datasetMisplaced},
	"a dataset with options of mkfs":                    {change: all(wanted(), fsType(v1alpha1.Dataset), made("-I 512")), refusal: mkfsMisplaced},
}

func TestAVolumeOfFilesystemZFSIsInAPoolOfZFS(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range datasetCases {
		t.Run(name, func(t *testing.T) {
			expect(t, env.Client.Create(t.Context(), newVolume(t, tc.change)), tc.refusal)
		})
	}
}
