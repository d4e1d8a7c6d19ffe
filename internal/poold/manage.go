package poold

import (
	"context"

	"berth.dev/berth/internal/poold/pb"
	"berth.dev/berth/internal/provision"
)

// Ensure implements provision.Manager.
func (c *Client) Ensure(ctx context.Context, w provision.PoolWish) (provision.Outcome, error) {
	o, err := c.rpc.Ensure(ctx, wishToWire(w))
	return provision.Outcome{Reason: provision.Reason(o.GetReason()), Message: o.GetMessage()}, fromStatus(ctx, err)
}

func (s *server) Ensure(ctx context.Context, r *pb.PoolWish) (*pb.Outcome, error) {
	o, err := s.node.Ensure(ctx, wishFromWire(r))
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.Outcome{Reason: string(o.Reason), Message: o.Message}, nil
}

func wishToWire(w provision.PoolWish) *pb.PoolWish {
	return &pb.PoolWish{
		Pool: refToWire(w.Pool), Disks: w.Disks,
		SizePercent: int32(w.SizePercent),                                   //nolint:gosec // the server checks that they are percentages
		ExtendAt:    int32(w.Extension.At), ExtendBy: int32(w.Extension.By), //nolint:gosec // likewise
		Redundancy: string(w.Layout.Redundancy), Search: w.Search,
		Width: int32(w.Layout.Width), Ashift: int32(w.Layout.Ashift), //nolint:gosec // likewise
	}
}

func wishFromWire(w *pb.PoolWish) provision.PoolWish {
	return provision.PoolWish{
		Pool: refFromWire(w.GetPool()), Disks: w.GetDisks(), SizePercent: int(w.GetSizePercent()),
		Extension: provision.Extension{At: int(w.GetExtendAt()), By: int(w.GetExtendBy())},
		Layout:    provision.Layout{Redundancy: provision.Redundancy(w.GetRedundancy()), Width: int(w.GetWidth()), Ashift: int(w.GetAshift())},
		Search:    w.GetSearch(),
	}
}
