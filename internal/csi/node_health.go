package csi

import (
	"cmp"
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/publish/health"
	"berth.dev/berth/internal/publish/inline"
)

// statusOf has the words of CSI for the kinds of conditions.
var statusOf = map[health.Status]csi.VolumeHealthErrorType{
	health.Degraded:     csi.VolumeHealthErrorType_DEGRADED,
	health.Inaccessible: csi.VolumeHealthErrorType_INACCESSIBLE,
	health.DataLoss:     csi.VolumeHealthErrorType_DATA_LOSS,
}

// NodeGetVolumeHealth returns what is wrong with a volume on this node. The kubelet shows it in the pod's
// status, with its feature gate CSIVolumeHealth.
func (n *Node) NodeGetVolumeHealth(ctx context.Context, r *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	if n.health == nil {
		return nil, status.Error(codes.Unimplemented, "this driver does not tell the health of volumes")
	}
	if err := checkID(r.GetVolumeId()); err != nil {
		return nil, err
	}
	id := r.GetVolumeId()
	if n.driver.Inline && inline.IsHandle(id) {
		id = inline.ID(id)
	}
	found, err := n.health.Health(ctx, id, cmp.Or(r.GetVolumePublishPath(), r.GetStagingTargetPath()))
	if err != nil {
		return nil, nodeStatus(err)
	}
	answer := &csi.VolumeHealth{VolumeId: r.GetVolumeId()}
	for _, c := range found {
		answer.HealthStatuses = append(answer.HealthStatuses, &csi.VolumeHealth_VolumeHealthEntry{
			Status: statusOf[c.Status], Reason: c.Reason, Message: entries.Clip(c.Message), // Kubernetes allows as much
		})
	}
	return &csi.NodeGetVolumeHealthResponse{VolumeHealth: answer}, nil
}
