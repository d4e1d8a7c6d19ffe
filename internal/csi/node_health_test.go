package csi

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/health"
)

// volumeHealth answers with conditions, and remembers what it was asked.
type volumeHealth struct {
	found    []health.Condition
	err      error
	id, path string
}

func (h *volumeHealth) Health(_ context.Context, id, path string) ([]health.Condition, error) {
	h.id, h.path = id, path
	return h.found, h.err
}

func TestTheHealthOfAVolumeIsToldInTheWordsOfCSI(t *testing.T) {
	long := strings.Repeat("ä", 1024)
	h := &volumeHealth{found: []health.Condition{
		{Status: health.DataLoss, Reason: "A", Message: "a"}, {Status: health.Inaccessible, Reason: "B", Message: "b"}, {Status: health.Degraded, Reason: "C", Message: long},
	}}
	n := NewNode(driver.Local(), "n1", &nodeVolumes{}, nil).Tells(h)
	r := &csi.NodeGetVolumeHealthRequest{VolumeId: nodeVolume, VolumePublishPath: "/pod", StagingTargetPath: "/stage"}
	got, err := n.NodeGetVolumeHealth(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	want := &csi.NodeGetVolumeHealthResponse{VolumeHealth: &csi.VolumeHealth{VolumeId: nodeVolume, HealthStatuses: []*csi.VolumeHealth_VolumeHealthEntry{
		{Status: csi.VolumeHealthErrorType_DATA_LOSS, Reason: "A", Message: "a"},
		{Status: csi.VolumeHealthErrorType_INACCESSIBLE, Reason: "B", Message: "b"},
		{Status: csi.VolumeHealthErrorType_DEGRADED, Reason: "C", Message: long[:1024]},
	}}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if h.id != nodeVolume || h.path != "/pod" {
		t.Errorf("asked for %s at %s", h.id, h.path)
	}
	r.VolumePublishPath = ""
	if _, err := n.NodeGetVolumeHealth(t.Context(), r); err != nil || h.path != "/stage" {
		t.Errorf("asked at %s, %v", h.path, err)
	}
}

func TestTheHealthOfAnInlineVolumeIsThatOfItsData(t *testing.T) {
	h := &volumeHealth{}
	handle := "csi-" + strings.Repeat("0123456789abcdef", 4)
	n := NewNode(driver.Local(), "n1", &nodeVolumes{}, nil).Tells(h)
	got, err := n.NodeGetVolumeHealth(t.Context(), &csi.NodeGetVolumeHealthRequest{VolumeId: handle})
	if err != nil || got.GetVolumeHealth().GetVolumeId() != handle || h.id != provision.InlinePrefix+handle[4:44] {
		t.Errorf("asked for %s, got %v, %v", h.id, got, err)
	}
}

func TestHealthIsAnnouncedOnlyIfItIsTold(t *testing.T) {
	dumb := NewNode(driver.Local(), "n1", &nodeVolumes{}, nil)
	_, err := dumb.NodeGetVolumeHealth(t.Context(), &csi.NodeGetVolumeHealthRequest{VolumeId: nodeVolume})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("error %v", err)
	}
	if slices.Contains(capabilities(t, dumb), csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH) {
		t.Error("a service that cannot tell announces that it does")
	}
	if !slices.Contains(capabilities(t, dumb.Tells(&volumeHealth{})), csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH) {
		t.Error("a service that tells does not announce it")
	}
}

func TestAHealthThatIsNotKnownIsAnError(t *testing.T) {
	n := NewNode(driver.Local(), "n1", &nodeVolumes{}, nil).Tells(&volumeHealth{err: provision.ErrNotFound})
	for id, want := range map[string]codes.Code{"": codes.InvalidArgument, nodeVolume: codes.NotFound} {
		if _, err := n.NodeGetVolumeHealth(t.Context(), &csi.NodeGetVolumeHealthRequest{VolumeId: id}); status.Code(toStatus(err)) != want {
			t.Errorf("error %v for id %q", err, id)
		}
	}
}
