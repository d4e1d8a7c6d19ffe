package csi

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/publish/health"
	"berth.dev/berth/internal/publish/inline"
	"berth.dev/berth/internal/publish/staging"
)

// NodeVolumes are the use cases behind the node service. All are idempotent and
// none needs the API server.
type NodeVolumes interface {
	Stage(ctx context.Context, r staging.StageRequest) error
	Unstage(ctx context.Context, id, path string) error
	Publish(ctx context.Context, r staging.PublishRequest) error
	Unpublish(ctx context.Context, id, target string) error
	Expand(ctx context.Context, id, path string, size int64) (int64, error)
	Stats(ctx context.Context, id, path string) (staging.Figures, error)
}

// InlineVolumes are the use cases for inline volumes, which a pod's spec describes. The
// kubelet neither stages nor expands them.
type InlineVolumes interface {
	Publish(ctx context.Context, r inline.PublishRequest) error
	Unpublish(ctx context.Context, handle, target string) error
	Stats(ctx context.Context, handle, target string) (staging.Figures, error)
}

// VolumeHealth says what is wrong with a volume of the node; nothing if all is well. The path is where it is
// mounted, or empty.
type VolumeHealth interface {
	Health(ctx context.Context, id, path string) ([]health.Condition, error)
}

var (
	_ VolumeHealth  = (*health.Service)(nil)
	_ NodeVolumes   = (*staging.Service)(nil)
	_ InlineVolumes = (*inline.Service)(nil)
)

// Node is the CSI node service.
type Node struct {
	csi.UnimplementedNodeServer
	driver  driver.Driver
	name    string
	volumes NodeVolumes
	inline  InlineVolumes
	health  VolumeHealth
}

// NewNode makes the service of a driver on the named node on top of the use cases. Those for
// inline volumes are nil if the driver has none.
func NewNode(d driver.Driver, name string, v NodeVolumes, i InlineVolumes) *Node {
	return &Node{driver: d, name: name, volumes: v, inline: i}
}

// Tells lets the service answer for the health of volumes, which it announces then.
func (n *Node) Tells(h VolumeHealth) *Node {
	n.health = h
	return n
}

// Register adds the service to a server.
func (n *Node) Register(s grpc.ServiceRegistrar) { csi.RegisterNodeServer(s, n) }

// NodeGetInfo names the node and its topology segment.
func (n *Node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{
		NodeId:             n.name,
		AccessibleTopology: &csi.Topology{Segments: map[string]string{v1alpha1.TopologyKey: n.name}},
	}, nil
}

// NodeGetCapabilities announces what this service does. VOLUME_MOUNT_GROUP is
// missing on purpose: the kubelet applies the group (fsGroupPolicy File).
func (n *Node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	var capabilities []*csi.NodeServiceCapability
	types := []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	}
	if n.health != nil {
		types = append(types, csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH)
	}
	for _, t := range types {
		capabilities = append(capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: t}},
		})
	}
	return &csi.NodeGetCapabilitiesResponse{Capabilities: capabilities}, nil
}

// NodeStageVolume mounts a volume at the staging path.
func (n *Node) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	request, err := parseStage(n.driver, r)
	if err != nil {
		return nil, err
	}
	if err := n.volumes.Stage(ctx, request); err != nil {
		return nil, nodeStatus(err)
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume unmounts a volume from the staging path.
func (n *Node) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := checkNodeCall(r.GetVolumeId(), "staging target path", r.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	if err := n.volumes.Unstage(ctx, r.GetVolumeId(), r.GetStagingTargetPath()); err != nil {
		return nil, nodeStatus(err)
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume makes a volume appear at a pod's target path.
func (n *Node) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	publish := n.publish
	if isInline(r) {
		publish = n.publishInline
	}
	if err := publish(ctx, r); err != nil {
		return nil, nodeStatus(err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (n *Node) publish(ctx context.Context, r *csi.NodePublishVolumeRequest) error {
	request, err := parsePublish(n.driver, r)
	if err != nil {
		return err
	}
	return n.volumes.Publish(ctx, request)
}

func (n *Node) publishInline(ctx context.Context, r *csi.NodePublishVolumeRequest) error {
	request, err := parseInline(n.driver, r)
	if err != nil {
		return err
	}
	return n.inline.Publish(ctx, request)
}

// NodeUnpublishVolume removes a volume from a pod's target path.
func (n *Node) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := checkNodeCall(r.GetVolumeId(), "target path", r.GetTargetPath()); err != nil {
		return nil, err
	}
	unpublish := n.volumes.Unpublish
	if n.driver.Inline && inline.IsHandle(r.GetVolumeId()) {
		unpublish = n.inline.Unpublish
	}
	if err := unpublish(ctx, r.GetVolumeId(), r.GetTargetPath()); err != nil {
		return nil, nodeStatus(err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeExpandVolume grows a mounted filesystem to the size of its device.
func (n *Node) NodeExpandVolume(ctx context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if err := checkNodeCall(r.GetVolumeId(), "volume path", r.GetVolumePath()); err != nil {
		return nil, err
	}
	size, err := n.volumes.Expand(ctx, r.GetVolumeId(), r.GetVolumePath(), r.GetCapacityRange().GetRequiredBytes())
	if err != nil {
		return nil, nodeStatus(err)
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: size}, nil
}

// NodeGetVolumeStats returns the size and use of a volume.
func (n *Node) NodeGetVolumeStats(ctx context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if err := checkNodeCall(r.GetVolumeId(), "volume path", r.GetVolumePath()); err != nil {
		return nil, err
	}
	stats := n.volumes.Stats
	if n.driver.Inline && inline.IsHandle(r.GetVolumeId()) {
		stats = n.inline.Stats
	}
	figures, err := stats(ctx, r.GetVolumeId(), r.GetVolumePath())
	if err != nil {
		return nil, nodeStatus(err)
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: usageOf(figures)}, nil
}
