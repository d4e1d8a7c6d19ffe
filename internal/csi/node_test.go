package csi

import (
	"context"
	"errors"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/staging"
)

const nodeVolume = "pvc-00000000-0000-0000-0000-000000000001"

// nodeVolumes records the last request and answers with one result.
type nodeVolumes struct {
	staged    staging.StageRequest
	published staging.PublishRequest
	figures   staging.Figures
	err       error
}

func (n *nodeVolumes) Stage(_ context.Context, r staging.StageRequest) error {
	n.staged = r
	return n.err
}

func (n *nodeVolumes) Publish(_ context.Context, r staging.PublishRequest) error {
	n.published = r
	return n.err
}

func (n *nodeVolumes) Unstage(context.Context, string, string) error   { return n.err }
func (n *nodeVolumes) Unpublish(context.Context, string, string) error { return n.err }
func (n *nodeVolumes) Expand(_ context.Context, _, _ string, size int64) (int64, error) {
	return size, n.err
}
func (n *nodeVolumes) Stats(context.Context, string, string) (staging.Figures, error) {
	return n.figures, n.err
}

type mode = csi.VolumeCapability_AccessMode_Mode

func mounted(m mode, fs string, flags ...string) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: m},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fs, MountFlags: flags}},
	}
}

func raw(m mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: m},
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
	}
}

const (
	writer       = csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	singleWriter = csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
	// The kubelet sends this mode for ReadWriteOnce if the driver supports it.
	severalWriters = csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER

	reader = csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY
	multi  = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
)

func TestParseStage(t *testing.T) {
	want := staging.StageRequest{ID: nodeVolume, Path: "/stage"}
	with := func(change func(*staging.StageRequest)) staging.StageRequest { r := want; change(&r); return r }
	tests := map[string]struct {
		capability *csi.VolumeCapability
		want       staging.StageRequest
		refused    bool
	}{
		"no filesystem": {capability: mounted(writer, ""), want: with(func(r *staging.StageRequest) { r.Options = nil })},
		"a filesystem with options": {capability: mounted(writer, "xfs", "noatime", "rw"),
			want: with(func(r *staging.StageRequest) { r.Filesystem, r.Options = "xfs", []string{"noatime"} })},
		"the SELinux context of the pods": {capability: mounted(writer, "", `context="u:r:t:s0:c1,c2"`),
			want: with(func(r *staging.StageRequest) { r.Options = []string{`context="u:r:t:s0:c1,c2"`} })},
		"a read-only option":                  {capability: mounted(writer, "", "ro"), want: with(func(r *staging.StageRequest) { r.ReadOnly = true })},
		"a mode for readers":                  {capability: mounted(reader, ""), want: with(func(r *staging.StageRequest) { r.ReadOnly = true })},
		"a raw block device":                  {capability: raw(writer), want: with(func(r *staging.StageRequest) { r.Block = true })},
		"a mode for many nodes":               {capability: mounted(multi, ""), refused: true},
		"an unknown filesystem":               {capability: mounted(writer, "ntfs"), refused: true},
		"no capability":                       {refused: true},
		"a capability without mount or block": {capability: &csi.VolumeCapability{AccessMode: raw(writer).AccessMode}, refused: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v := &nodeVolumes{}
			_, err := NewNode(driver.Local(), "n1", v, nil).NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
				VolumeId: nodeVolume, StagingTargetPath: "/stage", VolumeCapability: tc.capability})
			if tc.refused {
				if status.Code(toStatus(err)) != codes.InvalidArgument {
					t.Errorf("error %v; want %s", err, codes.InvalidArgument)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(v.staged.Options) == 0 {
				v.staged.Options = nil
			}
			if diff := cmp.Diff(tc.want, v.staged); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParsePublish(t *testing.T) {
	tests := map[string]struct {
		request *csi.NodePublishVolumeRequest
		want    staging.PublishRequest
	}{
		"a filesystem": {
			request: &csi.NodePublishVolumeRequest{VolumeCapability: mounted(writer, ""), StagingTargetPath: "/stage"},
			want:    staging.PublishRequest{StagingPath: "/stage"}},
		"read-only": {
			request: &csi.NodePublishVolumeRequest{VolumeCapability: mounted(writer, ""), StagingTargetPath: "/stage", Readonly: true},
			want:    staging.PublishRequest{StagingPath: "/stage", ReadOnly: true}},
		"a mode for readers": {
			request: &csi.NodePublishVolumeRequest{VolumeCapability: mounted(reader, ""), StagingTargetPath: "/stage"},
			want:    staging.PublishRequest{StagingPath: "/stage", ReadOnly: true}},
		"the SELinux context of the pod": {
			request: &csi.NodePublishVolumeRequest{VolumeCapability: mounted(writer, "", "noatime", `context="u:r:t:s0:c1,c2"`), StagingTargetPath: "/stage"},
			want:    staging.PublishRequest{StagingPath: "/stage", Context: "u:r:t:s0:c1,c2"}},
		"a mode for several pods": {
			request: &csi.NodePublishVolumeRequest{VolumeCapability: mounted(severalWriters, ""), StagingTargetPath: "/stage"},
			want:    staging.PublishRequest{StagingPath: "/stage"}},
		"a raw block device for readers": {
			request: &csi.NodePublishVolumeRequest{VolumeCapability: raw(severalWriters), Readonly: true},
			want:    staging.PublishRequest{Block: true, ReadOnly: true}},
		"a mode for a single writer": {
			request: &csi.NodePublishVolumeRequest{VolumeCapability: mounted(singleWriter, ""), StagingTargetPath: "/stage"},
			want:    staging.PublishRequest{StagingPath: "/stage", Exclusive: true}},
		"a raw block device needs no staging path": {
			request: &csi.NodePublishVolumeRequest{VolumeCapability: raw(writer)},
			want:    staging.PublishRequest{Block: true}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v := &nodeVolumes{}
			tc.request.VolumeId, tc.request.TargetPath = nodeVolume, "/pod"
			tc.want.ID, tc.want.Target = nodeVolume, "/pod"
			if _, err := NewNode(driver.Local(), "n1", v, nil).NodePublishVolume(t.Context(), tc.request); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, v.published); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNodeCallsWithoutAFieldAreInvalid(t *testing.T) {
	n, ctx := NewNode(driver.Local(), "n1", &nodeVolumes{}, nil), t.Context()
	for name, call := range map[string]func() error{
		"stage without id": func() error {
			_, err := n.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{StagingTargetPath: "/s", VolumeCapability: raw(writer)})
			return err
		},
		"unstage without path": func() error {
			_, err := n.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: nodeVolume})
			return err
		},
		"publish of a filesystem without staging path": func() error {
			_, err := n.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{VolumeId: nodeVolume, TargetPath: "/p", VolumeCapability: mounted(writer, "")})
			return err
		},
		"publish with a malformed SELinux context": func() error {
			_, err := n.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
				VolumeId: nodeVolume, TargetPath: "/p", StagingTargetPath: "/s", VolumeCapability: mounted(writer, "", "context=a,suid")})
			return err
		},
		"unpublish without path": func() error {
			_, err := n.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: nodeVolume})
			return err
		},
		"expand without id": func() error {
			_, err := n.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{VolumePath: "/p"})
			return err
		},
		"stats without path": func() error {
			_, err := n.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: nodeVolume})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := status.Code(toStatus(call())); got != codes.InvalidArgument {
				t.Errorf("code %s; want %s", got, codes.InvalidArgument)
			}
		})
	}
}

func TestNodeErrorsHaveTheirCodes(t *testing.T) {
	for want, class := range map[codes.Code]error{
		codes.FailedPrecondition: staging.ErrNotStaged,
		codes.Internal:           mount.ErrCorrupt,
		codes.NotFound:           provision.ErrNotFound,
		codes.Aborted:            keyed.ErrLocked,
		codes.AlreadyExists:      provision.ErrConflict,
		codes.InvalidArgument:    provision.ErrInvalid,
		codes.Unavailable:        errors.New("of no class"),
		codes.DeadlineExceeded:   context.DeadlineExceeded,
	} {
		n := NewNode(driver.Local(), "n1", &nodeVolumes{err: class}, nil)
		_, err := n.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: nodeVolume, StagingTargetPath: "/s"})
		if got := status.Code(toStatus(err)); got != want {
			t.Errorf("%v: code %s; want %s", class, got, want)
		}
	}
}

func TestUsage(t *testing.T) {
	bytes := &csi.VolumeUsage{Unit: csi.VolumeUsage_BYTES, Total: 10, Available: 7, Used: 3}
	inodes := &csi.VolumeUsage{Unit: csi.VolumeUsage_INODES, Total: 5, Available: 4, Used: 1}
	stats := mount.Stats{Total: 10, Available: 7, Used: 3, Inodes: 5, InodesAvailable: 4, InodesUsed: 1}
	tests := map[string]struct {
		figures staging.Figures
		want    []*csi.VolumeUsage
	}{
		"a filesystem has bytes and inodes": {staging.Figures{Stats: stats}, []*csi.VolumeUsage{bytes, inodes}},
		"a block device has bytes":          {staging.Figures{Block: true, Stats: mount.Stats{Total: 10}}, []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: 10}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := NewNode(driver.Local(), "n1", &nodeVolumes{figures: tc.figures}, nil).NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: nodeVolume, VolumePath: "/p"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.GetUsage(), protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheNodeIsItsOwnTopologySegment(t *testing.T) {
	got, err := NewNode(driver.Local(), "n1", &nodeVolumes{}, nil).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	if err != nil || got.GetNodeId() != "n1" || got.GetAccessibleTopology().GetSegments()["topology.berth.dev/node"] != "n1" {
		t.Errorf("info %v, %v", got, err)
	}
}
