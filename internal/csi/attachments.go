package csi

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Attachments are the use cases for volumes that Kubernetes attaches by VolumeAttachments. All are idempotent.
// Neither decides who may write: that is decided on the node.
type Attachments interface {
	// Publish has the volume attached to a node.
	Publish(ctx context.Context, volume, node string) error
	// Unpublish returns when the node, or every node if it is empty, may not write the volume any more. It
	// detaches nothing.
	Unpublish(ctx context.Context, volume, node string) error
}

// WithAttachments announces that volumes are published by the controller.
func (c *Controller) WithAttachments(a Attachments) *Controller {
	next := *c
	next.attachments = a
	return &next
}

// ControllerPublishVolume has a volume attached to a node. What a node needs to find the disk, it knows itself.
func (c *Controller) ControllerPublishVolume(ctx context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	if c.attachments == nil {
		return c.UnimplementedControllerServer.ControllerPublishVolume(ctx, r)
	}
	if err := checkID(r.GetVolumeId()); err != nil {
		return nil, err
	}
	switch {
	case r.GetNodeId() == "":
		return nil, invalid("node id is missing")
	case r.GetVolumeCapability() == nil:
		return nil, invalid("volume capability is missing")
	case r.GetReadonly():
		return nil, invalid("a volume is attached to be written; pods that only read mount it read-only")
	}
	if _, err := parseCapability(c.driver, r.GetVolumeCapability()); err != nil {
		return nil, err
	}
	if err := c.attachments.Publish(ctx, r.GetVolumeId(), r.GetNodeId()); err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{}, nil
}

// ControllerUnpublishVolume waits for the end of a node's right to write. The disk stays attached.
func (c *Controller) ControllerUnpublishVolume(ctx context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	if c.attachments == nil {
		return c.UnimplementedControllerServer.ControllerUnpublishVolume(ctx, r)
	}
	if err := checkID(r.GetVolumeId()); err != nil {
		return nil, err
	}
	if err := c.attachments.Unpublish(ctx, r.GetVolumeId(), r.GetNodeId()); err != nil {
		return nil, err
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}
