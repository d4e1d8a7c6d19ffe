package csi

import (
	"context"
	"errors"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase/snapshots"
)

// Snapshots are the use cases for snapshots. All are idempotent.
type Snapshots interface {
	Create(ctx context.Context, r snapshots.Request) (snapshots.Snapshot, error)
	Delete(ctx context.Context, id string) error
	Get(ctx context.Context, id string) (snapshots.Snapshot, error)
	List(ctx context.Context, volume, token string, limit int) (page []snapshots.Snapshot, next string, err error)
}

var _ Snapshots = (*snapshots.Service)(nil)

// sidecar is the prefix of the parameters that the csi-snapshotter adds for people to read.
const sidecar = "csi.storage.k8s.io/"

// WithSnapshots announces snapshots, and volumes that begin as copies.
func (c *Controller) WithSnapshots(s Snapshots) *Controller {
	next := *c
	next.snapshots = s
	return &next
}

// CreateSnapshot takes a snapshot.
func (c *Controller) CreateSnapshot(ctx context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if c.snapshots == nil {
		return c.UnimplementedControllerServer.CreateSnapshot(ctx, r)
	}
	if err := checkSnapshot(r); err != nil {
		return nil, err
	}
	s, err := c.snapshots.Create(ctx, snapshots.Request{Name: r.GetName(), Volume: r.GetSourceVolumeId()})
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: snapshotMessage(s)}, nil
}

func checkSnapshot(r *csi.CreateSnapshotRequest) error {
	if err := checkName("snapshot", r.GetName()); err != nil {
		return err
	}
	if r.GetSourceVolumeId() == "" {
		return invalid("source volume id is missing")
	}
	for key := range r.GetParameters() {
		if !strings.HasPrefix(key, sidecar) {
			return invalid("unknown parameter %q: a VolumeSnapshotClass of Berth's has none", key)
		}
	}
	return nil
}

// DeleteSnapshot deletes a snapshot.
func (c *Controller) DeleteSnapshot(ctx context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	switch {
	case c.snapshots == nil:
		return c.UnimplementedControllerServer.DeleteSnapshot(ctx, r)
	case r.GetSnapshotId() == "":
		return nil, invalid("snapshot id is missing")
	}
	if err := c.snapshots.Delete(ctx, r.GetSnapshotId()); err != nil {
		return nil, err
	}
	return &csi.DeleteSnapshotResponse{}, nil
}

// ListSnapshots returns the snapshots page by page. A request for one id reads that
// snapshot afresh: the csi-snapshotter uses it to ask whether the snapshot is ready.
func (c *Controller) ListSnapshots(ctx context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	switch {
	case c.snapshots == nil:
		return c.UnimplementedControllerServer.ListSnapshots(ctx, r)
	case r.GetMaxEntries() < 0:
		return nil, invalid("max entries cannot be negative")
	case r.GetSnapshotId() != "":
		return c.listOne(ctx, r)
	}
	page, next, err := c.snapshots.List(ctx, r.GetSourceVolumeId(), r.GetStartingToken(), int(r.GetMaxEntries()))
	if err != nil {
		return nil, err
	}
	return listing(page, next), nil
}

func (c *Controller) listOne(ctx context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	s, err := c.snapshots.Get(ctx, r.GetSnapshotId())
	switch {
	case errors.Is(err, provision.ErrNotFound):
		return listing(nil, ""), nil
	case err != nil:
		return nil, err
	case r.GetSourceVolumeId() != "" && r.GetSourceVolumeId() != s.Volume:
		return listing(nil, ""), nil
	}
	return listing([]snapshots.Snapshot{s}, ""), nil
}

func listing(page []snapshots.Snapshot, next string) *csi.ListSnapshotsResponse {
	response := &csi.ListSnapshotsResponse{NextToken: next}
	for _, s := range page {
		response.Entries = append(response.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: snapshotMessage(s)})
	}
	return response
}

// snapshotMessage returns the CSI message of a snapshot.
func snapshotMessage(s snapshots.Snapshot) *csi.Snapshot {
	return &csi.Snapshot{
		SnapshotId: s.ID, SourceVolumeId: s.Volume, SizeBytes: s.Size, CreationTime: timestamppb.New(s.Taken), ReadyToUse: s.Ready,
	}
}

// parseSource reads the source that a new volume shall be a copy of.
func parseSource(s *csi.VolumeContentSource) (*v1alpha1.VolumeSource, error) {
	switch {
	case s == nil:
		return nil, nil
	case s.GetSnapshot().GetSnapshotId() != "":
		return &v1alpha1.VolumeSource{Snapshot: s.GetSnapshot().GetSnapshotId()}, nil
	case s.GetVolume().GetVolumeId() != "":
		return &v1alpha1.VolumeSource{Volume: s.GetVolume().GetVolumeId()}, nil
	}
	return nil, invalid("the content source names neither a snapshot nor a volume")
}

// sourceMessage returns the CSI message of a source.
func sourceMessage(s *v1alpha1.VolumeSource) *csi.VolumeContentSource {
	switch {
	case s == nil:
		return nil
	case s.Snapshot != "":
		return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: s.Snapshot},
		}}
	default:
		return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
			Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: s.Volume},
		}}
	}
}
