package poold

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/poold/pb"
	"berth.dev/berth/internal/provision"
)

// Report implements provision.Provisioner.
func (c *Client) Report(ctx context.Context) ([]provision.Pool, error) {
	response, err := c.rpc.Report(ctx, &pb.ReportRequest{})
	if err != nil {
		return nil, fromStatus(ctx, err)
	}
	var pools []provision.Pool
	for _, p := range response.GetPools() {
		pools = append(pools, poolFromWire(p))
	}
	var warnings []provision.Warning
	for _, w := range response.GetWarnings() {
		warnings = append(warnings, provision.Warning{Reason: provision.Reason(w.GetReason()), Message: w.GetMessage()})
	}
	c.warnings.Store(&warnings)
	if silent := response.GetSilent(); silent != "" {
		return pools, fmt.Errorf("%w: %s", provision.ErrUnavailable, silent)
	}
	return pools, nil
}

// Warnings implements provision.Warner with the warnings of the latest report.
func (c *Client) Warnings() []provision.Warning {
	if latest := c.warnings.Load(); latest != nil {
		return *latest
	}
	return nil
}

// Create implements provision.Provisioner.
func (c *Client) Create(ctx context.Context, r provision.CreateRequest) (provision.Volume, error) {
	v, err := c.rpc.Create(ctx, createToWire(r))
	return volumeFromWire(v), fromStatus(ctx, err)
}

// Get implements provision.Provisioner.
func (c *Client) Get(ctx context.Context, id string) (provision.Volume, error) {
	v, err := c.rpc.Get(ctx, &pb.GetRequest{Id: id})
	return volumeFromWire(v), fromStatus(ctx, err)
}

// Expand implements provision.Provisioner.
func (c *Client) Expand(ctx context.Context, r provision.ExpandRequest) (provision.Volume, error) {
	v, err := c.rpc.Expand(ctx, &pb.ExpandRequest{Id: r.ID, Size: r.Size, Limits: limitsToWire(r.Limits)})
	return volumeFromWire(v), fromStatus(ctx, err)
}

// Format implements provision.Provisioner.
func (c *Client) Format(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	v, err := c.rpc.Format(ctx, &pb.FormatRequest{Id: r.ID, Filesystem: r.Filesystem, Options: r.Options})
	return volumeFromWire(v), fromStatus(ctx, err)
}

// Delete implements provision.Provisioner.
func (c *Client) Delete(ctx context.Context, id string) error {
	_, err := c.rpc.Delete(ctx, &pb.DeleteRequest{Id: id})
	return fromStatus(ctx, err)
}

// Mount implements mount.Mounter.
func (c *Client) Mount(ctx context.Context, r mount.Request) error {
	_, err := c.rpc.Mount(ctx, &pb.MountRequest{
		Device: r.Content.Source, Identity: string(r.Content.Identity), Tree: r.Content.Tree, Target: r.Target, Filesystem: r.Filesystem, Options: r.Options, ReadOnly: r.ReadOnly,
	})
	return fromStatus(ctx, err)
}

// Bind implements mount.Mounter.
func (c *Client) Bind(ctx context.Context, r mount.BindRequest) error {
	_, err := c.rpc.Bind(ctx, &pb.BindRequest{
		Device: r.Content.Source, Identity: string(r.Content.Identity), Tree: r.Content.Tree, Source: r.Source, Target: r.Target, ReadOnly: r.ReadOnly, Context: r.Context,
	})
	return fromStatus(ctx, err)
}

// Unmount implements mount.Mounter.
func (c *Client) Unmount(ctx context.Context, target string) error {
	_, err := c.rpc.Unmount(ctx, &pb.UnmountRequest{Target: target})
	return fromStatus(ctx, err)
}

// Grow implements mount.Mounter.
func (c *Client) Grow(ctx context.Context, r mount.GrowRequest) error {
	_, err := c.rpc.Grow(ctx, &pb.GrowRequest{Device: r.Content.Source, Identity: string(r.Content.Identity), Tree: r.Content.Tree, Target: r.Target, Filesystem: r.Filesystem})
	return fromStatus(ctx, err)
}

// Trim implements mount.Mounter.
func (c *Client) Trim(ctx context.Context, r mount.TrimRequest) (mount.Trimmed, error) {
	t, err := c.rpc.Trim(ctx, &pb.TrimRequest{Device: r.Content.Source, Identity: string(r.Content.Identity), Tree: r.Content.Tree, Target: r.Target, Start: r.Start, Length: r.Length})
	return mount.Trimmed{Bytes: t.GetBytes(), Next: t.GetNext()}, fromStatus(ctx, err)
}

// Stats implements mount.Mounter.
func (c *Client) Stats(ctx context.Context, path string) (mount.Stats, error) {
	s, err := c.rpc.Stats(ctx, &pb.StatsRequest{Path: path})
	return mount.Stats{
		Total: s.GetTotal(), Available: s.GetAvailable(), Used: s.GetUsed(),
		Inodes: s.GetInodes(), InodesAvailable: s.GetInodesAvailable(), InodesUsed: s.GetInodesUsed(),
	}, fromStatus(ctx, err)
}
