package rules

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

const (
	trimBounds = "trimInterval must be between 1h and 8760h"
	trimGains  = "trimInterval is for pools that gain by a trim: zpools and filesystems of btrfs do not"
)

func trimmed(every time.Duration, also ...func(*v1alpha1.PoolClass)) func(*v1alpha1.PoolClass) {
	return func(c *v1alpha1.PoolClass) {
		c.Spec.TrimInterval = &metav1.Duration{Duration: every}
		for _, change := range also {
			change(c)
		}
	}
}

// over makes the class one of another provisioner.
func over(p v1alpha1.ProvisionerType, set func(*v1alpha1.PoolClassSpec)) func(*v1alpha1.PoolClass) {
	return func(c *v1alpha1.PoolClass) {
		c.Spec.Provisioner, c.Spec.LVM = p, nil
		set(&c.Spec)
	}
}

// trimCases are classes that say how often filesystems are trimmed.
var trimCases = map[string]struct {
	change  func(*v1alpha1.PoolClass)
	refusal string
}{
	"a class of volume groups trims each hour": {change: trimmed(time.Hour)},
	"a class of thin pools trims each week": {change: trimmed(168*time.Hour, over(v1alpha1.ProvisionerLVMThin, func(s *v1alpha1.PoolClassSpec) {
		s.LVMThin = &v1alpha1.LVMThinPools{ThinPools: []string{"vg/thin"}}
	}))},
	"a class of disks trims each year": {change: trimmed(8760*time.Hour, over(v1alpha1.ProvisionerDevice, func(s *v1alpha1.PoolClassSpec) {
		s.Devices = &v1alpha1.DevicePools{Paths: []string{"/dev/sd*"}}
	}))},
	"a class trims more often than each hour":       {change: trimmed(time.Hour - time.Second), refusal: trimBounds},
	"a class trims at once":                         {change: trimmed(0), refusal: trimBounds},
	"a class trims more rarely than once in a year": {change: trimmed(8760*time.Hour + time.Second), refusal: trimBounds},
	"a class trims before":                          {change: trimmed(-time.Hour), refusal: "spec.trimInterval"},
	"a class of zpools trims": {change: trimmed(time.Hour, over(v1alpha1.ProvisionerZFS, func(s *v1alpha1.PoolClassSpec) {
		s.ZFS = &v1alpha1.ZFSPools{Pools: []string{"tank"}}
	})), refusal: trimGains},
	"a class of btrfs trims": {change: trimmed(time.Hour, over(v1alpha1.ProvisionerBtrfs, func(s *v1alpha1.PoolClassSpec) {
		s.Btrfs = &v1alpha1.BtrfsPools{Filesystems: []string{"data"}}
	})), refusal: trimGains},
}

func TestHowOftenFilesystemsAreTrimmedIsBounded(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range trimCases {
		t.Run(name, func(t *testing.T) {
			c := newClass(t, "vg")
			tc.change(c)
			expect(t, env.Client.Create(t.Context(), c), tc.refusal)
			if tc.refusal == "" && c.TrimEvery() != c.Spec.TrimInterval.Duration {
				t.Errorf("it trims every %v", c.TrimEvery())
			}
		})
	}
}

func TestAnIntervalOfTrimsThatDoesNotFitATimeIsRefused(t *testing.T) {
	env := apitest.Start(t)
	for _, interval := range []string{"99999999999999h", "weekly", "7d", ""} {
		c := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"provisioner": "LVM", "lvm": map[string]any{"volumeGroups": []any{"vg"}}, "trimInterval": interval,
		}}}
		c.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("PoolClass"))
		c.SetName(newClass(t).Name)
		expect(t, env.Client.Create(t.Context(), c), "trimInterval")
	}
}

func TestAClassTrimsNothingUnlessItSaysHowOften(t *testing.T) {
	var none *v1alpha1.PoolClass
	if none.TrimEvery() != 0 || newClass(t, "vg").TrimEvery() != 0 {
		t.Error("it trims")
	}
}
