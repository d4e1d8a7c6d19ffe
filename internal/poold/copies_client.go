package poold

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/poold/pb"
	"berth.dev/berth/internal/provision"
)

// copies is the Replicator of the pools of a type, in another process.
type copies struct {
	client    *Client
	rpc       pb.CopiesClient
	poolType  string
	abilities provision.Abilities
}

var _ provision.Replicator = (*copies)(nil)

// ReplicatorOf implements provision.Replicators.
func (c *Client) ReplicatorOf(ctx context.Context, poolType string) (provision.Replicator, error) {
	r := &copies{client: c, rpc: pb.NewCopiesClient(c.conn), poolType: poolType}
	answer, err := r.rpc.Abilities(ctx, &pb.CopyRequest{PoolType: poolType})
	if err == nil {
		err = json.Unmarshal(answer.GetResult(), &r.abilities)
	}
	if err != nil {
		return nil, fromStatus(ctx, err)
	}
	return r, nil
}

// Abilities implements provision.Replicator.
func (c *copies) Abilities() provision.Abilities { return c.abilities }

// State implements provision.Replicator.
func (c *copies) State(ctx context.Context, id string) (s provision.Replica, err error) {
	answer, err := c.rpc.State(ctx, &pb.CopyRequest{PoolType: c.poolType, Volume: id})
	if err != nil {
		return s, fromStatus(ctx, err)
	}
	if err := json.Unmarshal(answer.GetResult(), &s); err != nil {
		return s, fmt.Errorf("%w: the state of volume %s cannot be read: %w", provision.ErrUnavailable, id, err)
	}
	return s, nil
}

// method is one of pb.CopiesClient.
type method = func(context.Context, *pb.CopyRequest, ...grpc.CallOption) (*pb.CopyResponse, error)

func (c *copies) call(ctx context.Context, m method, id string, arguments any) error {
	r, err := c.request(id, arguments)
	if err == nil {
		_, err = m(ctx, r)
	}
	return fromStatus(ctx, err)
}

func (c *copies) request(id string, arguments any) (*pb.CopyRequest, error) {
	text, err := json.Marshal(arguments)
	return &pb.CopyRequest{PoolType: c.poolType, Volume: id, Arguments: text}, err
}

// Mark implements provision.Replicator.
func (c *copies) Mark(ctx context.Context, id string, m provision.Mark) error {
	return c.call(ctx, c.rpc.Mark, id, m)
}

// Snapshot implements provision.Replicator.
func (c *copies) Snapshot(ctx context.Context, r provision.PointRequest) error {
	return c.call(ctx, c.rpc.Snapshot, "", r)
}

// Abort implements provision.Replicator.
func (c *copies) Abort(ctx context.Context, id string) error {
	return c.call(ctx, c.rpc.Abort, id, struct{}{})
}

// RollBack implements provision.Replicator.
func (c *copies) RollBack(ctx context.Context, id string, to lineage.Point) error {
	return c.call(ctx, c.rpc.RollBack, id, to)
}

// Preserve implements provision.Replicator.
func (c *copies) Preserve(ctx context.Context, id string, common lineage.Point) error {
	return c.call(ctx, c.rpc.Preserve, id, common)
}

// Forget implements provision.Replicator.
func (c *copies) Forget(ctx context.Context, id string, tip lineage.Point) error {
	return c.call(ctx, c.rpc.Forget, id, tip)
}

// Drop implements provision.Replicator.
func (c *copies) Drop(ctx context.Context, id string, points []lineage.Point) error {
	return c.call(ctx, c.rpc.Drop, id, points)
}

// Hold implements provision.Replicator.
func (c *copies) Hold(ctx context.Context, id string, h ownership.Hold) error {
	return c.call(ctx, c.rpc.Hold, id, h)
}

// Release implements provision.Replicator.
func (c *copies) Release(ctx context.Context, id, owner string, p lineage.Point) error {
	return c.call(ctx, c.rpc.Release, id, ownership.Hold{For: owner, Point: p})
}

// Writable implements provision.Replicator.
func (c *copies) Writable(ctx context.Context, id string) (provision.Volume, error) {
	v, err := c.rpc.Writable(ctx, &pb.CopyRequest{PoolType: c.poolType, Volume: id})
	return volumeFromWire(v), fromStatus(ctx, err)
}

// Send implements provision.Replicator.
func (c *copies) Send(ctx context.Context, r provision.SendRequest, pipe *os.File) error {
	return c.piped(ctx, pb.CopiesClient.Send, r, pipe)
}

// Receive implements provision.Replicator.
func (c *copies) Receive(ctx context.Context, h provision.StreamHeader, pipe *os.File) error {
	return c.piped(ctx, pb.CopiesClient.Receive, h, pipe)
}

// streamMethod is a method of pb.CopiesClient that works on a pipe.
type streamMethod = func(pb.CopiesClient, context.Context, ...grpc.CallOption) (grpc.ClientStreamingClient[pb.CopyRequest, pb.CopyResponse], error)

// piped makes a call on a connection of its own, which brings the pipe. If ctx ends, it waits until poold has ended
// the work, as a Replicator of this process does, and not longer than poold itself waits when it stops.
func (c *copies) piped(ctx context.Context, m streamMethod, arguments any, pipe *os.File) error {
	r, err := c.request("", arguments)
	if err != nil {
		return err
	}
	conn, err := c.client.connect(newPassing(pipe))
	if err != nil {
		return err
	}
	defer conn.Close()
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	call, err := m(pb.NewCopiesClient(conn), inner)
	if err != nil {
		return fromStatus(ctx, err)
	}
	if call.Send(r) == nil { // else the answer has the error
		gaveUp := context.AfterFunc(ctx, func() {
			_ = call.CloseSend()
			time.AfterFunc(stopGrace, stop)
		})
		defer gaveUp()
	}
	return fromStatus(ctx, call.RecvMsg(&pb.CopyResponse{}))
}
