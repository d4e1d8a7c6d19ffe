package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/pools"
	"berth.dev/berth/internal/decide/entries"
)

// The limits of a report's schema. The ledger allows as many pools.
const (
	maxPools   = 256
	maxClasses = 64
)

// fitted leaves out pools and classes beyond the schema's limits, for which the API server
// would refuse the whole report. Pools that hold nothing of Berth's go first, then the last
// ones by name. Nothing is placed in the parts that are left out, and the condition says so.
func fitted(described []v1alpha1.Pool, expected []string, s pools.Latest) ([]v1alpha1.Pool, []metav1.Condition) {
	var said []string
	if n := len(described); n > maxPools {
		first := map[string]int{}
		for _, name := range expected {
			first[name] = -1
		}
		for _, p := range s.Pools {
			if len(p.Volumes)+len(p.Snapshots)+len(p.Wiping) > 0 {
				first[p.Name] = -1
			}
		}
		slices.SortStableFunc(described, func(a, b v1alpha1.Pool) int { return cmp.Compare(first[a.Name], first[b.Name]) })
		said = append(said, fmt.Sprintf("the node has %d pools, of which a report has place for %d; %s and others are left out", n, maxPools, described[maxPools].Name))
		described = described[:maxPools]
		slices.SortFunc(described, func(a, b v1alpha1.Pool) int { return compare(a.Name, b.Name) })
	}
	for i := range described {
		if p := &described[i]; len(p.Classes) > maxClasses {
			said = append(said, fmt.Sprintf("pool %s serves %d classes, of which a report has place for %d; %s and others are left out", p.Name, len(p.Classes), maxClasses, p.Classes[maxClasses]))
			p.Classes = p.Classes[:maxClasses]
		}
	}
	if len(said) == 0 {
		return described, nil
	}
	return described, []metav1.Condition{{
		Type: v1alpha1.ConditionPoolsLeftOut, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTooMany,
		Message: entries.Clip("no volume is placed in the pools that are left out: let the PoolClasses select less. " + strings.Join(said, "; ")),
	}}
}
