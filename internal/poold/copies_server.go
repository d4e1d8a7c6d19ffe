package poold

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/poold/pb"
	"berth.dev/berth/internal/provision"
)

// copiesServer serves the Replicators of a Node.
type copiesServer struct {
	pb.UnimplementedCopiesServer
	node provision.Replicators
	// stopping is closed when poold stops.
	stopping <-chan struct{}
}

// errStops ends a stream when poold stops: a stream can take longer than a caller waits.
var errStops = fmt.Errorf("%w: poold stops", provision.ErrUnavailable)

// result is the answer to a call that returns a value.
func result(value any, err error) (*pb.CopyResponse, error) {
	if err != nil {
		return nil, toStatus(err)
	}
	text, err := json.Marshal(value)
	return &pb.CopyResponse{Result: text}, toStatus(err)
}

// call carries a call out. A is the type of its arguments beside the volume.
func call[A any](ctx context.Context, s *copiesServer, r *pb.CopyRequest, do func(provision.Replicator, A) error) (*pb.CopyResponse, error) {
	copies, arguments, err := understood[A](ctx, s, r)
	if err == nil {
		err = do(copies, arguments)
	}
	return &pb.CopyResponse{}, toStatus(err)
}

// understood returns the Replicator and the arguments of a request.
func understood[A any](ctx context.Context, s *copiesServer, r *pb.CopyRequest) (copies provision.Replicator, arguments A, err error) {
	if err := json.Unmarshal(r.GetArguments(), &arguments); err != nil {
		return nil, arguments, fmt.Errorf("%w: the arguments cannot be read: %w", provision.ErrInvalid, err)
	}
	copies, err = s.node.ReplicatorOf(ctx, r.GetPoolType())
	return copies, arguments, err
}

func (s *copiesServer) Abilities(ctx context.Context, r *pb.CopyRequest) (*pb.CopyResponse, error) {
	copies, err := s.node.ReplicatorOf(ctx, r.GetPoolType())
	if err != nil {
		return nil, toStatus(err)
	}
	return result(copies.Abilities(), nil)
}

func (s *copiesServer) State(ctx context.Context, r *pb.CopyRequest) (*pb.CopyResponse, error) {
	copies, err := s.node.ReplicatorOf(ctx, r.GetPoolType())
	if err != nil {
		return nil, toStatus(err)
	}
	return result(copies.State(ctx, r.GetVolume()))
}

func (s *copiesServer) Mark(ctx context.Context, r *pb.CopyRequest) (*pb.CopyResponse, error) {
	return call(ctx, s, r, func(c provision.Replicator, m provision.Mark) error { return c.Mark(ctx, r.GetVolume(), m) })
}

func (s *copiesServer) Snapshot(ctx context.Context, r *pb.CopyRequest) (*pb.CopyResponse, error) {
	return call(ctx, s, r, func(c provision.Replicator, p provision.PointRequest) error { return c.Snapshot(ctx, p) })
}

func (s *copiesServer) Abort(ctx context.Context, r *pb.CopyRequest) (*pb.CopyResponse, error) {
	return call(ctx, s, r, func(c provision.Replicator, _ struct{}) error { return c.Abort(ctx, r.GetVolume()) })
}

func (s *copiesServer) RollBack(ctx context.Context, r *pb.CopyRequest) (*pb.CopyResponse, error) {
	return call(ctx, s, r, func(c provision.Replicator, to lineage.Point) error { return c.RollBack(ctx, r.GetVolume(), to) })
}

func (s *copiesServer) Preserve(ctx context.Context, r *pb.CopyRequest) (*pb.CopyResponse, error) {
	return call(ctx, s, r, func(c provision.Replicator, common lineage.Point) error {
		return c.Preserve(ctx, r.GetVolume(), common)
	})
}

func (s *copiesServer) Forget(ctx context.Context, r *pb.CopyRequest) (*pb.CopyResponse, error) {
	return call(ctx, s, r, func(c provision.Replicator, tip lineage.Point) error { return c.Forget(ctx, r.GetVolume(), tip) })
}

func (s *copiesServer) Drop(ctx context.Context, r *pb.CopyRequest) (*pb.CopyResponse, error) {
	return call(ctx, s, r, func(c provision.Replicator, points []lineage.Point) error { return c.Drop(ctx, r.GetVolume(), points) })
}

func (s *copiesServer) Hold(ctx context.Context, r *pb.CopyRequest) (*pb.CopyResponse, error) {
	return call(ctx, s, r, func(c provision.Replicator, h ownership.Hold) error { return c.Hold(ctx, r.GetVolume(), h) })
}

func (s *copiesServer) Release(ctx context.Context, r *pb.CopyRequest) (*pb.CopyResponse, error) {
	return call(ctx, s, r, func(c provision.Replicator, h ownership.Hold) error {
		return c.Release(ctx, r.GetVolume(), h.For, h.Point)
	})
}

func (s *copiesServer) Writable(ctx context.Context, r *pb.CopyRequest) (*pb.Volume, error) {
	copies, err := s.node.ReplicatorOf(ctx, r.GetPoolType())
	if err != nil {
		return nil, toStatus(err)
	}
	return reply(copies.Writable(ctx, r.GetVolume()))
}

// stream is a call of Send or of Receive, as gRPC has it.
type stream = grpc.ClientStreamingServer[pb.CopyRequest, pb.CopyResponse]

func (s *copiesServer) Send(call stream) error {
	return piped(s, call, unix.O_WRONLY, func(ctx context.Context, c provision.Replicator, r provision.SendRequest, pipe *os.File) error {
		return c.Send(ctx, r, pipe)
	})
}

func (s *copiesServer) Receive(call stream) error {
	return piped(s, call, unix.O_RDONLY, func(ctx context.Context, c provision.Replicator, h provision.StreamHeader, pipe *os.File) error {
		return c.Receive(ctx, h, pipe)
	})
}

// piped carries a call out that works on a pipe. It answers when the work has ended: by itself, because the caller
// has given up or has ended, or because poold stops.
func piped[A any](s *copiesServer, call stream, mode int, do func(context.Context, provision.Replicator, A, *os.File) error) error {
	r, err := call.Recv()
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(call.Context())
	defer end(nil)
	copies, arguments, err := understood[A](ctx, s, r)
	if err != nil {
		return toStatus(err)
	}
	pipe, err := pipeOf(ctx, mode)
	if err != nil {
		return toStatus(err)
	}
	defer pipe.Close()
	go func() { // ends with the call
		_, _ = call.Recv()
		end(context.Canceled)
	}()
	go func() {
		select {
		case <-s.stopping:
			end(errStops)
		case <-ctx.Done():
		}
	}()
	if err := do(ctx, copies, arguments, pipe); err != nil {
		return toStatus(err)
	}
	return call.SendAndClose(&pb.CopyResponse{})
}
