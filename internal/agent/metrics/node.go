package metrics

import (
	"context"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
)

// Node measures the operations of a node that change something or may take
// long. Reads from memory are passed on as they are.
func (o *Operations) Node(n poold.Node) poold.Node { return &node{Node: n, operations: o} }

type node struct {
	poold.Node
	operations *Operations
}

var _ poold.Node = (*node)(nil)

func (n *node) Create(ctx context.Context, r provision.CreateRequest) (v provision.Volume, err error) {
	defer n.operations.time("Create")(&err)
	return n.Node.Create(ctx, r)
}

func (n *node) Expand(ctx context.Context, r provision.ExpandRequest) (v provision.Volume, err error) {
	defer n.operations.time("Expand")(&err)
	return n.Node.Expand(ctx, r)
}

func (n *node) Format(ctx context.Context, r provision.FormatRequest) (v provision.Volume, err error) {
	defer n.operations.time("Format")(&err)
	return n.Node.Format(ctx, r)
}

func (n *node) Delete(ctx context.Context, id string) (err error) {
	defer n.operations.time("Delete")(&err)
	return n.Node.Delete(ctx, id)
}

func (n *node) Snapshot(ctx context.Context, r provision.SnapshotRequest) (s provision.Snapshot, err error) {
	defer n.operations.time("Snapshot")(&err)
	return n.Node.Snapshot(ctx, r)
}

func (n *node) DeleteSnapshot(ctx context.Context, id string) (err error) {
	defer n.operations.time("DeleteSnapshot")(&err)
	return n.Node.DeleteSnapshot(ctx, id)
}

func (n *node) Ensure(ctx context.Context, w provision.PoolWish) (o provision.Outcome, err error) {
	defer n.operations.time("Ensure")(&err)
	return n.Node.Ensure(ctx, w)
}

func (n *node) Report(ctx context.Context) (p []provision.Pool, err error) {
	defer n.operations.time("Report")(&err)
	return n.Node.Report(ctx)
}

func (n *node) Mount(ctx context.Context, r mount.Request) (err error) {
	defer n.operations.time("Mount")(&err)
	return n.Node.Mount(ctx, r)
}

func (n *node) Bind(ctx context.Context, r mount.BindRequest) (err error) {
	defer n.operations.time("Bind")(&err)
	return n.Node.Bind(ctx, r)
}

func (n *node) Unmount(ctx context.Context, target string) (err error) {
	defer n.operations.time("Unmount")(&err)
	return n.Node.Unmount(ctx, target)
}

func (n *node) Grow(ctx context.Context, r mount.GrowRequest) (err error) {
	defer n.operations.time("Grow")(&err)
	return n.Node.Grow(ctx, r)
}

func (n *node) Trim(ctx context.Context, r mount.TrimRequest) (t mount.Trimmed, err error) {
	defer n.operations.time("Trim")(&err)
	return n.Node.Trim(ctx, r)
}

func (n *node) Stats(ctx context.Context, path string) (s mount.Stats, err error) {
	defer n.operations.time("Stats")(&err)
	return n.Node.Stats(ctx, path)
}
