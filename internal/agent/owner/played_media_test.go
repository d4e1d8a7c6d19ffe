package owner

import (
	"context"
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

// playedPools are the pools of a played node.
type playedPools struct {
	Pools
	*script
	replica provision.Replica
	fetched Fetch
	during  func(ctx context.Context) // is called while a stream is under way
}

func (p *playedPools) State(context.Context, string) (provision.Replica, error) {
	return p.replica, p.does("State")
}

func (p *playedPools) Mark(_ context.Context, _ string, m provision.Mark) error {
	switch {
	case m.Fate != nil:
		return p.does("Mark", fmt.Sprintf("condemned %v quarantined %v until %d", m.Fate.Condemned, m.Fate.Quarantined, max(0, m.Fate.DestroyAt.Unix())))
	case !m.Opened.IsZero():
		return p.does("Mark", fmt.Sprintf("opened %d", m.Opened.Number))
	}
	return p.does("Mark", fmt.Sprintf("promise %d closed %d", m.Promise.Epoch.Number, m.Closed.Number))
}

func (p *playedPools) Snapshot(_ context.Context, r provision.PointRequest) error {
	return p.does("Snapshot", r.Point.Seq)
}

func (p *playedPools) Preserve(_ context.Context, _ string, common lineage.Point) error {
	return p.does("Preserve", common.Seq)
}

func (p *playedPools) RollBack(_ context.Context, _ string, to lineage.Point) error {
	return p.does("RollBack", to.Seq)
}

func (p *playedPools) Drop(_ context.Context, _ string, points []lineage.Point) error {
	return p.does("Drop", len(points))
}

func (p *playedPools) Hold(_ context.Context, _ string, h ownership.Hold) error {
	return p.does("Hold", fmt.Sprintf("%d for %s", h.Point.Seq, h.For))
}

func (p *playedPools) Abort(context.Context, string) error { return p.does("Abort") }

func (p *playedPools) Writable(context.Context, string) (provision.Volume, error) {
	return provision.Volume{Content: provision.Content{Source: "/dev/head"}}, p.does("Writable")
}

func (p *playedPools) Make(_ context.Context, _ *v1alpha1.Volume, size int64) error {
	return p.does("Make", size)
}

func (p *playedPools) Destroy(context.Context, string) error { return p.does("Destroy") }

func (p *playedPools) Fetch(ctx context.Context, f Fetch) error {
	p.fetched = f
	if p.during != nil {
		p.during(ctx)
	}
	return p.does("Fetch")
}

// playedDisks are the shared disks of a played node.
type playedDisks struct {
	shared.Disks
	*script
	view shared.View
}

func (d *playedDisks) Look(context.Context, shared.Disk) (shared.View, error) {
	return d.view, d.does("Look")
}

func (d *playedDisks) Attach(context.Context, shared.Disk) error { return d.does("Attach") }
func (d *playedDisks) Detach(context.Context, shared.Disk) error { return d.does("Detach") }
func (d *playedDisks) Flush(context.Context, shared.Disk) error  { return d.does("Flush") }

func (d *playedDisks) Register(_ context.Context, _ shared.Disk, key ownership.RawKey, use shared.Use) error {
	if key == 0 {
		return d.does("Unregister")
	}
	return d.does("Register", map[shared.Use]string{shared.Idle: "idle", shared.OwnMount: "under its mount"}[use])
}

func (d *playedDisks) Reserve(context.Context, shared.Disk, ownership.RawKey, ownership.RawKey) error {
	return d.does("Reserve")
}
