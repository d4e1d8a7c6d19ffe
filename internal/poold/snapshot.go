package poold

import (
	"context"
	"time"

	"berth.dev/berth/internal/poold/pb"
	"berth.dev/berth/internal/provision"
)

// Snapshot implements provision.Snapshotter.
func (c *Client) Snapshot(ctx context.Context, r provision.SnapshotRequest) (provision.Snapshot, error) {
	s, err := c.rpc.TakeSnapshot(ctx, &pb.SnapshotRequest{Id: r.ID, Volume: r.Volume, Limits: limitsToWire(r.Limits)})
	return snapshotFromWire(s), fromStatus(ctx, err)
}

// GetSnapshot implements provision.Snapshotter.
func (c *Client) GetSnapshot(ctx context.Context, id string) (provision.Snapshot, error) {
	s, err := c.rpc.GetSnapshot(ctx, &pb.GetRequest{Id: id})
	return snapshotFromWire(s), fromStatus(ctx, err)
}

// DeleteSnapshot implements provision.Snapshotter.
func (c *Client) DeleteSnapshot(ctx context.Context, id string) error {
	_, err := c.rpc.DeleteSnapshot(ctx, &pb.DeleteRequest{Id: id})
	return fromStatus(ctx, err)
}

func (s *server) TakeSnapshot(ctx context.Context, r *pb.SnapshotRequest) (*pb.Snapshot, error) {
	return snapshotReply(s.node.Snapshot(ctx, provision.SnapshotRequest{ID: r.GetId(), Volume: r.GetVolume(), Limits: limitsFromWire(r.GetLimits())}))
}

func (s *server) GetSnapshot(ctx context.Context, r *pb.GetRequest) (*pb.Snapshot, error) {
	return snapshotReply(s.node.GetSnapshot(ctx, r.GetId()))
}

func (s *server) DeleteSnapshot(ctx context.Context, r *pb.DeleteRequest) (*pb.DeleteResponse, error) {
	return &pb.DeleteResponse{}, toStatus(s.node.DeleteSnapshot(ctx, r.GetId()))
}

func snapshotReply(s provision.Snapshot, err error) (*pb.Snapshot, error) {
	if err != nil {
		return nil, toStatus(err)
	}
	return snapshotToWire(s), nil
}

func snapshotToWire(s provision.Snapshot) *pb.Snapshot {
	return &pb.Snapshot{
		Id: s.ID, Volume: s.Volume, Pool: refToWire(s.Pool), Size: s.Size, Allocated: s.Allocated,
		Filesystem: s.Filesystem, Taken: s.Taken.Unix(), Copying: s.Copying, Problem: s.Problem,
	}
}

func snapshotFromWire(s *pb.Snapshot) provision.Snapshot {
	if s == nil {
		return provision.Snapshot{}
	}
	return provision.Snapshot{
		ID: s.GetId(), Volume: s.GetVolume(), Pool: refFromWire(s.GetPool()), Size: s.GetSize(), Allocated: s.GetAllocated(),
		Filesystem: s.GetFilesystem(), Taken: time.Unix(s.GetTaken(), 0).UTC(), Copying: s.GetCopying(), Problem: s.GetProblem(),
	}
}

// sourceToWire sends no message for a volume without a source.
func sourceToWire(s provision.Source) *pb.Source {
	if s == (provision.Source{}) {
		return nil
	}
	return &pb.Source{Snapshot: s.Snapshot, Volume: s.Volume}
}

func sourceFromWire(s *pb.Source) provision.Source {
	return provision.Source{Snapshot: s.GetSnapshot(), Volume: s.GetVolume()}
}
