package csi

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/storageclass"
	"berth.dev/berth/internal/usecase/luns"
	"berth.dev/berth/internal/usecase/volumes"
)

// Volumes are the use cases behind the controller service. All are idempotent.
type Volumes interface {
	Create(ctx context.Context, r volumes.Request) (volumes.Volume, error)
	Delete(ctx context.Context, id string) error
	Expand(ctx context.Context, id string, size volumes.Size) (volumes.Volume, error)
	Get(ctx context.Context, id string) (volumes.Volume, error)
	List(ctx context.Context, token string, limit int) (page []volumes.Volume, next string, err error)
	Capacity(ctx context.Context, class string, nodes []string) (volumes.Capacity, error)
}

var (
	_ Volumes = (*volumes.Service)(nil)
	_ Volumes = (*luns.Service)(nil)
)

// Controller is the CSI controller service.
type Controller struct {
	csi.UnimplementedControllerServer
	driver  driver.Driver
	volumes Volumes
	// snapshots is nil if the service does not announce snapshots.
	snapshots Snapshots
	// attachments is nil if nothing is published by the controller.
	attachments Attachments
}

// NewController makes the service of a driver on top of the use cases, which must see only that
// driver's volumes.
func NewController(d driver.Driver, v Volumes) *Controller { return &Controller{driver: d, volumes: v} }

// Register adds the service to a server.
func (c *Controller) Register(s grpc.ServiceRegistrar) { csi.RegisterControllerServer(s, c) }

// ControllerGetCapabilities announces what this service does.
func (c *Controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	var capabilities []*csi.ControllerServiceCapability
	types := []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_GET_VOLUME,
		csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
	}
	if c.driver.Capacity {
		types = append(types, csi.ControllerServiceCapability_RPC_GET_CAPACITY)
	}
	if c.snapshots != nil {
		types = append(types,
			csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
			csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
			csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
		)
	}
	if c.attachments != nil {
		types = append(types, csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME)
	}
	for _, t := range types {
		capabilities = append(capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}},
		})
	}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: capabilities}, nil
}

// CreateVolume makes a volume and returns it with its topology.
func (c *Controller) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if r.GetVolumeContentSource() != nil && c.snapshots == nil {
		return nil, invalid("creating a volume from a snapshot or another volume is not supported")
	}
	request, err := parseCreate(c.driver, r)
	if err != nil {
		return nil, err
	}
	v, err := c.volumes.Create(ctx, request)
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: c.message(v)}, nil
}

// DeleteVolume deletes a volume.
func (c *Controller) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if err := checkID(r.GetVolumeId()); err != nil {
		return nil, err
	}
	if err := c.volumes.Delete(ctx, r.GetVolumeId()); err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// ControllerExpandVolume makes a volume larger. A filesystem on it grows on the node.
func (c *Controller) ControllerExpandVolume(ctx context.Context, r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if err := checkID(r.GetVolumeId()); err != nil {
		return nil, err
	}
	if r.GetCapacityRange() == nil {
		return nil, invalid("capacity range is missing")
	}
	v, err := c.volumes.Expand(ctx, r.GetVolumeId(), parseSize(r.GetCapacityRange()))
	if err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{
		CapacityBytes:         v.Capacity,
		NodeExpansionRequired: v.Mode == v1alpha1.Filesystem,
	}, nil
}

// ControllerGetVolume returns one volume.
func (c *Controller) ControllerGetVolume(ctx context.Context, r *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	if err := checkID(r.GetVolumeId()); err != nil {
		return nil, err
	}
	v, err := c.volumes.Get(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeResponse{Volume: c.message(v), Status: &csi.ControllerGetVolumeResponse_VolumeStatus{}}, nil
}

// ListVolumes returns the volumes page by page.
func (c *Controller) ListVolumes(ctx context.Context, r *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	if r.GetMaxEntries() < 0 {
		return nil, invalid("max entries cannot be negative")
	}
	page, next, err := c.volumes.List(ctx, r.GetStartingToken(), int(r.GetMaxEntries()))
	if err != nil {
		return nil, err
	}
	response := &csi.ListVolumesResponse{NextToken: next}
	for _, v := range page {
		response.Entries = append(response.Entries, &csi.ListVolumesResponse_Entry{Volume: c.message(v)})
	}
	return response, nil
}

// GetCapacity returns the room for new volumes of a class on a node.
func (c *Controller) GetCapacity(ctx context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	if !c.driver.Capacity {
		return c.UnimplementedControllerServer.GetCapacity(ctx, r)
	}
	var parameters storageclass.Parameters
	var err error
	if len(r.GetParameters()) > 0 {
		if parameters, err = storageclass.Parse(r.GetParameters()); err != nil {
			return nil, err
		}
	}
	if len(r.GetVolumeCapabilities()) > 0 {
		if _, err := parseCapabilities(c.driver, r.GetVolumeCapabilities()); err != nil {
			return nil, err
		}
	}
	var nodes []string
	if r.GetAccessibleTopology() != nil {
		node, err := parseTopology(r.GetAccessibleTopology())
		if err != nil {
			return nil, err
		}
		nodes = []string{node}
	}
	room, err := c.volumes.Capacity(ctx, parameters.PoolClass, nodes)
	if err != nil {
		return nil, err
	}
	return &csi.GetCapacityResponse{AvailableCapacity: room.Total, MaximumVolumeSize: wrapperspb.Int64(room.Largest)}, nil
}

// message returns the CSI message of a volume.
func (c *Controller) message(v volumes.Volume) *csi.Volume {
	topology := topologyOf(v.Nodes)
	if segments := c.driver.Segments(v.ID); segments != nil {
		topology = []*csi.Topology{{Segments: segments}}
	}
	return &csi.Volume{VolumeId: v.ID, CapacityBytes: v.Capacity, AccessibleTopology: topology, ContentSource: sourceMessage(v.Source)}
}
