package trial

import (
	"context"
	"errors"
	"fmt"
	"net"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/quantity"
	"berth.dev/berth/internal/replicate/copies"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// Serve makes a volume of a size, and serves it until a node has fetched all of it, or ctx ends. It
// closes the listener.
func Serve(ctx context.Context, s Side, size int64, listener net.Listener) (err error) {
	me := s.Identity.Node
	defer func() { _ = listener.Close() }()
	if err := s.absent(ctx, Volume(me)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.leave(ctx, me)) }()
	sizes, err := s.fill(ctx, size)
	if err != nil {
		return fmt.Errorf("making volume %s: %w", Volume(me), err)
	}
	packer, err := wire.NewPacker(packing)
	if err != nil {
		return err
	}
	s.Note(fmt.Sprintf("serving volume %s on %s", Volume(me), listener.Addr()))
	return s.serve(ctx, listener, &stream.Server{
		Identity: s.Identity, Packer: packer, Streams: 2, Options: stream.Options{Pace: s.Pace},
		Stock: &copies.Stock{
			Copies: s.Copies, Now: s.Now,
			Estimate: func(q provision.SendRequest) uint64 { return sizes[q.Target] },
			Replica: func(_ context.Context, volume, _ string) error {
				if volume != Volume(me) {
					return errors.New("this node only serves the volume of a check")
				}
				return nil
			},
		},
	})
}

// serve returns when the second point has arrived somewhere.
func (s Side) serve(ctx context.Context, listener net.Listener, server *stream.Server) error {
	ctx, done := context.WithCancelCause(ctx)
	defer done(nil)
	server.Ended = func(peer string, sent stream.Sent, err error) {
		switch {
		case err != nil && ctx.Err() == nil:
			s.Note(fmt.Sprintf("a stream to node %q ended: %v", peer, err))
		case sent.Committed:
			s.Note(fmt.Sprintf("point %v has arrived on node %s", sent.Want.Target, peer))
		}
		if sent.Committed && sent.Want.Target == change {
			done(errArrived)
		}
	}
	err := server.Serve(ctx, listener)
	if errors.Is(context.Cause(ctx), errArrived) {
		return nil
	}
	return err
}

var errArrived = errors.New("all has arrived")

// fill makes the volume with its two points, and returns about how long their streams are, in bytes.
func (s Side) fill(ctx context.Context, size int64) (map[lineage.Point]uint64, error) {
	id := Volume(s.Identity.Node)
	sizes := map[lineage.Point]uint64{whole: uint64(max(size/2, 1)), change: uint64(max(size/50, 1))}
	s.Note(fmt.Sprintf("filling %s of a volume of %s in pool %s", quantity.Rough(size/2), quantity.Rough(size), s.Pool.Name))
	if _, err := s.Provisioner.Create(ctx, provision.CreateRequest{ID: id, Pool: s.Pool, Size: size, Tree: s.Tree}); err != nil {
		return nil, err
	}
	v, err := s.open(ctx, id, ownership.Promise{Epoch: first, Primary: s.Identity.Node, Lineage: lineage.Lineage{{Epoch: first}}})
	if err != nil {
		return nil, err
	}
	for _, p := range []lineage.Point{whole, change} {
		if err := s.Data.Fill(ctx, v, p.Seq, int64(sizes[p])); err != nil {
			return nil, err
		}
		if err := s.Copies.Snapshot(ctx, provision.PointRequest{Volume: id, Point: p}); err != nil {
			return nil, err
		}
	}
	return sizes, s.Copies.Mark(ctx, id, provision.Mark{Closed: first})
}
