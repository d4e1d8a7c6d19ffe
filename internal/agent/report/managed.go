package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	apply "berth.dev/berth/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/decide/wish"
	"berth.dev/berth/internal/provision"
)

// managed is the condition of a node on which classes ask for pools. Its reason is that
// of the first pool that is not as asked.
func managed(standings []wish.Standing) []metav1.Condition {
	if len(standings) == 0 {
		return nil
	}
	c := metav1.Condition{Type: v1alpha1.ConditionPoolsManaged, Status: metav1.ConditionTrue, Reason: string(provision.PoolAsAsked)}
	var met, unmet []string
	for _, s := range standings {
		line := fmt.Sprintf("PoolClass %s: %s", s.Class, s.Message)
		if s.Met() {
			met = append(met, line)
			continue
		}
		if unmet == nil {
			c.Status, c.Reason = metav1.ConditionFalse, string(s.Reason)
		}
		unmet = append(unmet, line)
	}
	if unmet == nil {
		unmet = met
	}
	c.Message = entries.Clip(strings.Join(unmet, "; "))
	return []metav1.Condition{c}
}

// filling is the condition of a node on which a thin pool that serves a class fills up.
func (f Facts) filling(pools []provision.Pool) []metav1.Condition {
	highest := 0
	var lines []string
	for _, p := range pools {
		if !provision.TraitsOf(p.Type).FillsUp() || p.Total <= 0 || len(f.serving(p)) == 0 {
			continue
		}
		data := int(coarse(p.Fill.Data, p.Total) * 100 / p.Total)
		if most := max(data, p.Fill.Metadata); most >= v1alpha1.FillingPercent {
			highest = max(highest, most)
			lines = append(lines, fmt.Sprintf("thin pool %s is filled to %d%%, its metadata to %d%%", p.Name, data, p.Fill.Metadata))
		}
	}
	if lines == nil {
		return nil
	}
	reason := v1alpha1.ReasonThinPoolFilling
	if highest >= v1alpha1.NearlyFullPercent {
		reason = v1alpha1.ReasonThinPoolNearlyFull
	}
	slices.Sort(lines)
	return []metav1.Condition{{
		Type: v1alpha1.ConditionFilling, Status: metav1.ConditionTrue, Reason: reason,
		Message: entries.Clip(strings.Join(lines, "; ") + "; writes stop when one is full: extend it, or let its PoolClass autoExtend it"),
	}}
}

// lastChange returns the last change that this process made to a pool; nil if it made none.
func (f Facts) lastChange(pool string) *v1alpha1.PoolChange {
	var last *wish.Standing
	for i, s := range f.Standings {
		if s.Pool == pool && s.Last.Reason != "" && (last == nil || s.At.After(last.At)) {
			last = &f.Standings[i]
		}
	}
	if last == nil {
		return nil
	}
	return &v1alpha1.PoolChange{
		At: metav1.NewTime(last.At.Truncate(time.Second)), Reason: v1alpha1.PoolChangeReason(last.Last.Reason), Message: entries.Clip(last.Last.Message),
	}
}

// changed keeps the last changes that an earlier process made to pools, which the previous
// report lists.
func changed(before, next []v1alpha1.Pool) []v1alpha1.Pool {
	for i := range next {
		for _, old := range before {
			if next[i].LastChange == nil && old.Name == next[i].Name {
				next[i].LastChange = old.LastChange
			}
		}
	}
	return next
}

// remembered returns the names in asked that a report lists.
func remembered(before *v1alpha1.StorageNode, asked []string) (names []string) {
	if before == nil {
		return nil
	}
	for _, p := range before.Status.Pools {
		if slices.Contains(asked, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}

// rememberedPool stands for a pool that Berth made and that is not there any more.
func rememberedPool(name string) v1alpha1.Pool {
	p := missingPool(name)
	p.Message = name + " was on this node and is not: check its disks. It is not made anew while this StorageNode lists it"
	return p
}

func appliedChange(c *v1alpha1.PoolChange) *apply.PoolChangeApplyConfiguration {
	if c == nil {
		return nil
	}
	return apply.PoolChange().WithAt(c.At).WithReason(c.Reason).WithMessage(c.Message)
}
