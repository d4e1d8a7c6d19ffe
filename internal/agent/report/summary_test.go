package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
)

func TestASummaryNamesTheFirstPoolsAndTheLargestVolume(t *testing.T) {
	of := func(name string, total, largest int64, health v1alpha1.PoolHealth) v1alpha1.Pool {
		return v1alpha1.Pool{Name: name, Total: quantity(total), LargestVolume: quantity(largest), Health: health}
	}
	one, two := of("vg0", 10*gib, 3*gib, v1alpha1.PoolHealthy), of("vg1", 0, 0, v1alpha1.PoolMissing)
	for name, tc := range map[string]struct {
		pools []v1alpha1.Pool
		want  *v1alpha1.StorageNodeSummary
	}{
		"no pool":                   {nil, nil},
		"one that is well":          {[]v1alpha1.Pool{one}, &v1alpha1.StorageNodeSummary{Pools: "vg0 10Gi", LargestVolume: "3Gi"}},
		"one that is not":           {[]v1alpha1.Pool{one, two}, &v1alpha1.StorageNodeSummary{Pools: "vg0 10Gi, vg1 Missing", LargestVolume: "3Gi"}},
		"more than a line can show": {[]v1alpha1.Pool{two, two, two, two, one}, &v1alpha1.StorageNodeSummary{Pools: "vg1 Missing, vg1 Missing, vg1 Missing, and 2 more", LargestVolume: "3Gi"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, summary(tc.pools)); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASummaryOfTheLongestNamesFitsIntoItsField(t *testing.T) {
	p := v1alpha1.Pool{Name: strings.Repeat("x", 253), Health: v1alpha1.PoolDegraded}
	if n := len(summary([]v1alpha1.Pool{p, p, p, p}).Pools); n > 1024 {
		t.Errorf("a summary has %d characters, and its field takes 1024", n)
	}
}
