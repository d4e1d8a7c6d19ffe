package plugin

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

// static holds the binder's answers for a pod whose claims may match volumes that
// exist. The answers in Filter are kept: Reserve must go by the answer for the node
// that Filter let pass.
type static struct {
	claims *volumebinding.PodVolumeClaims

	mu sync.Mutex
	// unmatched are the volumes that need room, by node.
	unmatched map[string][]schedule.Wanted
}

// mayMatch is whether a wanted claim's class has PersistentVolumes that exist and
// that no claim has.
func (p *Plugin) mayMatch(want *schedule.PodVolumes) bool {
	if p.Static.Available == nil {
		return false
	}
	for i := range want.Wanted {
		claim := want.Wanted[i].Claim
		if claim != nil && p.Static.Available(volume.GetPersistentVolumeClaimClass(claim)) {
			return true
		}
	}
	return false
}

// unmatched are the volumes that need room on the node. Where the binder sees a
// conflict VolumeBinding refuses the node, and this answer does not matter.
func (p *Plugin) unmatched(ctx context.Context, c *cycle, pod *corev1.Pod, node *corev1.Node) ([]schedule.Wanted, error) {
	if c.static == nil {
		return c.want.Wanted, nil
	}
	found, conflicts, err := p.Static.Binder().FindPodVolumes(klog.FromContext(ctx), pod, c.static.claims, node)
	if err != nil {
		return nil, fmt.Errorf("looking for static volumes on node %s: %w", node.Name, err)
	}
	if len(conflicts) > 0 {
		return c.want.Wanted, nil
	}
	provisioned := map[string]bool{}
	for _, dynamic := range found.DynamicProvisions {
		provisioned[string(dynamic.PVC.UID)] = true
	}
	var wanted []schedule.Wanted
	for _, w := range c.want.Wanted {
		if w.Claim == nil || provisioned[string(w.Claim.UID)] {
			wanted = append(wanted, w)
		}
	}
	c.static.mu.Lock()
	defer c.static.mu.Unlock()
	c.static.unmatched[node.Name] = wanted
	return wanted, nil
}

// wantedOn are the volumes that need room on a node that Filter let pass.
func (c *cycle) wantedOn(node string) []schedule.Wanted {
	if c.static == nil {
		return c.want.Wanted
	}
	c.static.mu.Lock()
	defer c.static.mu.Unlock()
	if wanted, asked := c.static.unmatched[node]; asked {
		return wanted
	}
	return c.want.Wanted
}

func demandsOf(wanted []schedule.Wanted) []ledger.Demand {
	return (&schedule.PodVolumes{Wanted: wanted}).Demands()
}
