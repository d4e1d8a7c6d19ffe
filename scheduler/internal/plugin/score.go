package plugin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/internal/schedule"
)

// PreScore looks up which nodes hold something already. Where every node is
// alike there is nothing to score.
func (p *Plugin) PreScore(ctx context.Context, state fwk.CycleState, _ *corev1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	c := read(state)
	if c == nil || len(nodes) < 2 {
		return fwk.NewStatus(fwk.Skip)
	}
	begun, err := p.begun(ctx, c.want.Wanted)
	if err != nil {
		return fwk.AsStatus(err)
	}
	c.holders = standings(append(begun, c.want.Holders...))
	if len(c.want.Wanted) == 0 && len(c.holders) < 2 {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

// begun are the places of Volumes that an earlier attempt has made: elsewhere the
// work would begin anew.
func (p *Plugin) begun(ctx context.Context, wanted []schedule.Wanted) ([]schedule.Holder, error) {
	var holders []schedule.Holder
	for _, w := range toCreate(wanted) {
		nodes, err := p.Placed(ctx, w.Request.Name)
		if err != nil {
			return nil, err
		}
		for _, node := range nodes {
			holders = append(holders, schedule.Holder{Volume: w.Request.Name, Node: node, Standing: schedule.Standby})
		}
	}
	return holders, nil
}

// standings is the worst standing of a node's replicas: a pod needs them all.
func standings(holders []schedule.Holder) map[string]schedule.Standing {
	byNode := map[string]schedule.Standing{}
	for _, h := range holders {
		if standing, known := byNode[h.Node]; !known || h.Standing < standing {
			byNode[h.Node] = h.Standing
		}
	}
	return byNode
}

// Score is up to half for the replicas on the node, and up to half for how well the
// rest lies there. Where no node holds anything only the rest counts.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	c := read(state)
	if c == nil {
		return 0, nil
	}
	name := info.Node().Name
	score := p.Book.Node(name).Score(c.request)
	if len(c.holders) == 0 {
		return score, nil
	}
	return fwk.MaxScore/2*int64(c.holders[name])/int64(schedule.Primary) + score/2, nil
}

// ScoreExtensions are not needed: scores are in the scheduler's range.
func (*Plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }
