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

var classCases = map[string]struct {
	change  func(*v1alpha1.PoolClass)
	refusal string
}{
	"a class over volume groups":    {change: groups("vg0", "data_1+x.y-z")},
	"a class that keeps some spare": {change: spare("10Gi")},
	"a class that keeps none":       {change: spare("0")},
	"a class that keeps a tenth":    {change: percent(10)},
	"less than no percent of spare": {change: percent(-1), refusal: "spec.sparePercent"},
	"more spare than there is":      {change: percent(101), refusal: "spec.sparePercent"},
	"a negative spare":              {change: spare("-1"), refusal: spareNotNegative},
	"no volume group":               {change: groups(), refusal: "spec.lvm.volumeGroups"},
	"the current directory":         {change: groups("."), refusal: groupNotADirectory},
	"the parent directory":          {change: groups("vg", ".."), refusal: groupNotADirectory},
	"an option in disguise":         {change: groups("-f"), refusal: "spec.lvm.volumeGroups[0]"},
	"a path":                        {change: groups("vg/lv"), refusal: "spec.lvm.volumeGroups[0]"},
	"a name longer than LVM allows": {change: groups(strings.Repeat("v", 128)), refusal: "spec.lvm.volumeGroups[0]"},
	"the same group twice":          {change: groups("vg", "vg"), refusal: "Duplicate value"},
	"no pools for the provisioner":  {change: func(c *v1alpha1.PoolClass) { c.Spec.LVM = nil }, refusal: lvmNeeded},
	"an unknown provisioner":        {change: func(c *v1alpha1.PoolClass) { c.Spec.Provisioner = "Tape" }, refusal: `Unsupported value: "Tape"`},
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
