package csi

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"berth.dev/berth/internal/driver"
)

// Identity is the CSI identity service: the driver's name and whether it is ready.
type Identity struct {
	csi.UnimplementedIdentityServer
	// Driver that the socket serves.
	Driver driver.Driver
	// Version of the program.
	Version string
	// Ready returns nil when calls can be served. Otherwise Probe reports "not ready" and
	// does not fail: a driver that is still starting is not broken.
	Ready func() error
}

// Register adds the service to a server.
func (i *Identity) Register(s grpc.ServiceRegistrar) { csi.RegisterIdentityServer(s, i) }

// GetPluginInfo names the driver.
func (i *Identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.Driver.Name, VendorVersion: i.Version}, nil
}

// GetPluginCapabilities announces the driver as a whole, on every socket: the
// controller service may be in another process.
func (i *Identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	service := func(t csi.PluginCapability_Service_Type) *csi.PluginCapability {
		return &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: t}}}
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		service(csi.PluginCapability_Service_CONTROLLER_SERVICE),
		service(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS),
		{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{
			Type: csi.PluginCapability_VolumeExpansion_ONLINE,
		}}},
	}}, nil
}

// Probe says whether the driver is ready.
func (i *Identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(i.Ready == nil || i.Ready() == nil)}, nil
}
