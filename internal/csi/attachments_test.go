package csi

import (
	"context"
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
)

// published gives one answer about every volume, and records what it was asked.
type published struct {
	err   error
	asked []string
}

func (p *published) Publish(_ context.Context, volume, node string) error {
	p.asked = append(p.asked, "publish", volume, node)
	return p.err
}

func (p *published) Unpublish(_ context.Context, volume, node string) error {
	p.asked = append(p.asked, "unpublish", volume, node)
	return p.err
}

func publish(edits ...func(*csi.ControllerPublishVolumeRequest)) *csi.ControllerPublishVolumeRequest {
	r := &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: "n1", VolumeCapability: &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

func TestPublishingIsAnnouncedOnlyWhereTheControllerDoesIt(t *testing.T) {
	without := NewController(driver.Disk(), &answers{})
	for want, c := range map[bool]*Controller{false: without, true: without.WithAttachments(&published{})} {
		got, err := c.ControllerGetCapabilities(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		is := slices.ContainsFunc(got.GetCapabilities(), func(c *csi.ControllerServiceCapability) bool {
			return c.GetRpc().GetType() == csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME
		})
		if is != want {
			t.Errorf("announced: %v, want %v", is, want)
		}
	}
	_, first := without.ControllerPublishVolume(t.Context(), publish())
	_, second := without.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: "n1"})
	if status.Code(first) != codes.Unimplemented || status.Code(second) != codes.Unimplemented {
		t.Errorf("without it: %v, %v", first, second)
	}
}

func TestAVolumeIsPublishedAndUnpublishedByItsIDAndTheNodes(t *testing.T) {
	p := &published{}
	c := NewController(driver.Disk(), &answers{}).WithAttachments(p)
	for range 2 {
		if _, err := c.ControllerPublishVolume(t.Context(), publish()); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: id}); err != nil {
		t.Error(err)
	}
	if want := []string{"publish", id, "n1", "publish", id, "n1", "unpublish", id, ""}; !slices.Equal(p.asked, want) {
		t.Errorf("asked %v", p.asked)
	}
}

func TestErrorsOfPublishingHaveTheCodesOfTheSpecification(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want codes.Code
	}{
		"no such volume or node":       {usecase.Fail(provision.ErrNotFound, "there is no volume"), codes.NotFound},
		"published to another node":    {usecase.Fail(provision.ErrInUse, "published to node n2"), codes.FailedPrecondition},
		"no free share or slot":        {usecase.Fail(usecase.ErrUnplaceable, "no slot"), codes.ResourceExhausted},
		"the node may still write":     {usecase.Fail(usecase.ErrBusy, "node n1 may still write"), codes.Aborted},
		"the API server does not know": {context.DeadlineExceeded, codes.DeadlineExceeded},
	} {
		c := NewController(driver.Disk(), &answers{}).WithAttachments(&published{err: test.err})
		_, first := c.ControllerPublishVolume(t.Context(), publish())
		_, second := c.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: "n1"})
		if a, b := status.Code(toStatus(first)), status.Code(toStatus(second)); a != test.want || b != test.want {
			t.Errorf("%s: %v and %v, want %v", name, a, b, test.want)
		}
	}
}

func TestRequestsToPublishThatMakeNoSenseAreRefused(t *testing.T) {
	p := &published{}
	c := NewController(driver.Disk(), &answers{}).WithAttachments(p)
	for name, edit := range map[string]func(*csi.ControllerPublishVolumeRequest){
		"no volume":     func(r *csi.ControllerPublishVolumeRequest) { r.VolumeId = "" },
		"no node":       func(r *csi.ControllerPublishVolumeRequest) { r.NodeId = "" },
		"no capability": func(r *csi.ControllerPublishVolumeRequest) { r.VolumeCapability = nil },
		"readers alone": func(r *csi.ControllerPublishVolumeRequest) { r.Readonly = true },
		"several nodes that mount a filesystem": func(r *csi.ControllerPublishVolumeRequest) {
			r.VolumeCapability = mounted(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, "")
		},
		"no way to use it": func(r *csi.ControllerPublishVolumeRequest) { r.VolumeCapability.AccessType = nil },
	} {
		if _, err := c.ControllerPublishVolume(t.Context(), publish(edit)); status.Code(toStatus(err)) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{NodeId: "n1"}); status.Code(toStatus(err)) != codes.InvalidArgument {
		t.Errorf("no volume to unpublish: %v", err)
	}
	if len(p.asked) > 0 {
		t.Errorf("asked %v", p.asked)
	}
}
