package poold

import (
	"context"

	"google.golang.org/grpc"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/poold/pb"
	"berth.dev/berth/internal/provision"
)

// server serves a Node over gRPC.
type server struct {
	pb.UnimplementedPooldServer
	node    Node
	changes *broadcast
}

func (s *server) Report(ctx context.Context, _ *pb.ReportRequest) (*pb.ReportResponse, error) {
	pools, err := s.node.Report(ctx)
	if err != nil && len(pools) == 0 {
		return nil, toStatus(err)
	}
	response := &pb.ReportResponse{}
	if err != nil {
		response.Silent = err.Error()
	}
	for _, p := range pools {
		response.Pools = append(response.Pools, poolToWire(p))
	}
	for _, w := range provision.WarningsOf(s.node) {
		response.Warnings = append(response.Warnings, &pb.Warning{Reason: string(w.Reason), Message: w.Message})
	}
	return response, nil
}

func (s *server) Watch(_ *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.WatchResponse]) error {
	changed, leave := s.changes.join()
	defer leave()
	for {
		if err := stream.Send(&pb.WatchResponse{}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-s.changes.done:
			return nil
		case <-stream.Context().Done():
			return nil
		}
	}
}

func (s *server) Create(ctx context.Context, r *pb.CreateRequest) (*pb.Volume, error) {
	return reply(s.node.Create(ctx, createFromWire(r)))
}

func (s *server) Get(ctx context.Context, r *pb.GetRequest) (*pb.Volume, error) {
	return reply(s.node.Get(ctx, r.GetId()))
}

func (s *server) Expand(ctx context.Context, r *pb.ExpandRequest) (*pb.Volume, error) {
	return reply(s.node.Expand(ctx, provision.ExpandRequest{ID: r.GetId(), Size: r.GetSize(), Limits: limitsFromWire(r.GetLimits())}))
}

func (s *server) Format(ctx context.Context, r *pb.FormatRequest) (*pb.Volume, error) {
	return reply(s.node.Format(ctx, provision.FormatRequest{ID: r.GetId(), Filesystem: r.GetFilesystem(), Options: r.GetOptions()}))
}

func (s *server) Delete(ctx context.Context, r *pb.DeleteRequest) (*pb.DeleteResponse, error) {
	return &pb.DeleteResponse{}, toStatus(s.node.Delete(ctx, r.GetId()))
}

func (s *server) Mount(ctx context.Context, r *pb.MountRequest) (*pb.MountResponse, error) {
	return &pb.MountResponse{}, toStatus(s.node.Mount(ctx, mount.Request{
		Content: contentFromWire(r), Target: r.GetTarget(),
		Filesystem: r.GetFilesystem(), Options: r.GetOptions(), ReadOnly: r.GetReadOnly(),
	}))
}

func (s *server) Bind(ctx context.Context, r *pb.BindRequest) (*pb.BindResponse, error) {
	return &pb.BindResponse{}, toStatus(s.node.Bind(ctx, mount.BindRequest{
		Content: contentFromWire(r), Source: r.GetSource(), Target: r.GetTarget(),
		ReadOnly: r.GetReadOnly(), Context: r.GetContext(),
	}))
}

func (s *server) Unmount(ctx context.Context, r *pb.UnmountRequest) (*pb.UnmountResponse, error) {
	return &pb.UnmountResponse{}, toStatus(s.node.Unmount(ctx, r.GetTarget()))
}

func (s *server) Grow(ctx context.Context, r *pb.GrowRequest) (*pb.GrowResponse, error) {
	return &pb.GrowResponse{}, toStatus(s.node.Grow(ctx, mount.GrowRequest{
		Content: contentFromWire(r), Target: r.GetTarget(), Filesystem: r.GetFilesystem(),
	}))
}

func (s *server) Trim(ctx context.Context, r *pb.TrimRequest) (*pb.TrimResponse, error) {
	t, err := s.node.Trim(ctx, mount.TrimRequest{Content: contentFromWire(r), Target: r.GetTarget(), Start: r.GetStart(), Length: r.GetLength()})
	return &pb.TrimResponse{Bytes: t.Bytes, Next: t.Next}, toStatus(err)
}

func (s *server) Stats(ctx context.Context, r *pb.StatsRequest) (*pb.StatsResponse, error) {
	f, err := s.node.Stats(ctx, r.GetPath())
	return &pb.StatsResponse{
		Total: f.Total, Available: f.Available, Used: f.Used,
		Inodes: f.Inodes, InodesAvailable: f.InodesAvailable, InodesUsed: f.InodesUsed,
	}, toStatus(err)
}

func reply(v provision.Volume, err error) (*pb.Volume, error) {
	if err != nil {
		return nil, toStatus(err)
	}
	return volumeToWire(v), nil
}
