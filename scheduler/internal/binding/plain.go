package binding

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/storage/volume"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/internal/schedule"
)

// plainKey marks the cycle of a pod all of whose claims are to be provisioned by
// Berth, on any node. VolumeBinding would look at every node and find the same.
const plainKey fwk.StateKey = Name

type plain struct{}

// Clone returns the mark: there is nothing in it.
func (plain) Clone() fwk.StateData { return plain{} }

func isPlain(state fwk.CycleState) bool {
	_, err := state.Read(plainKey)
	return err == nil
}

// PreFilter runs VolumeBinding's, and then skips Filter where it would refuse no
// node. It decides that from the informers, which may be behind the state that the
// scheduler has assumed. Reserve makes up for that.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	result, status := p.VolumeBinding.PreFilter(ctx, state, pod, nodes)
	if !status.IsSuccess() || !p.anywhere(pod) {
		return result, status
	}
	state.Write(plainKey, plain{})
	return nil, fwk.NewStatus(fwk.Skip)
}

// PreScore skips pods for which VolumeBinding would give every node the same
// score: it scores PersistentVolumes that claims match, and published capacity.
func (p *Plugin) PreScore(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	if isPlain(state) || !hasClaims(pod) {
		return fwk.NewStatus(fwk.Skip)
	}
	return p.VolumeBinding.PreScore(ctx, state, pod, nodes)
}

// Reserve runs Filter for the chosen node if Filter was skipped: Filter works out
// the objects to write.
func (p *Plugin) Reserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if isPlain(state) {
		info, err := p.nodes.NodeInfos().Get(node)
		if err != nil {
			return fwk.AsStatus(fmt.Errorf("looking for node %s: %w", node, err))
		}
		if status := p.Filter(ctx, state, pod, info); !status.IsSuccess() {
			return status
		}
	}
	return p.VolumeBinding.Reserve(ctx, state, pod, node)
}

// anywhere is whether all of the pod's claims are yet to be provisioned, by Berth
// and wherever the pod goes.
func (p *Plugin) anywhere(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		name := schedule.ClaimName(pod, &pod.Spec.Volumes[i])
		if name == "" {
			continue
		}
		claim, err := p.claims.PersistentVolumeClaims(pod.Namespace).Get(name)
		if err != nil || claim.Spec.VolumeName != "" || claim.Annotations[volume.AnnSelectedNode] != "" {
			return false
		}
		class, err := p.classes.Get(volume.GetPersistentVolumeClaimClass(claim))
		if err != nil || !unrestricted(class) || p.available(class.Name) {
			return false
		}
	}
	return true
}

// unrestricted is whether the class is Berth's and allows every node.
func unrestricted(class *storagev1.StorageClass) bool {
	return ours.Provisions(class) && len(class.AllowedTopologies) == 0
}

func hasClaims(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if schedule.ClaimName(pod, &pod.Spec.Volumes[i]) != "" {
			return true
		}
	}
	return false
}
