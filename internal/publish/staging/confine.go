package staging

import (
	"context"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/publish/kubeletdir"
)

// Confine makes a mounter that touches nothing outside the kubelet's directory,
// for a poold that other processes can reach.
func Confine(kubeletDir string, m mount.Mounter) mount.Mounter {
	return confined{Mounter: m, dir: kubeletdir.New(kubeletDir)}
}

// confined leaves Stats, which changes nothing, as it is.
type confined struct {
	mount.Mounter
	dir kubeletdir.Dir
}

func (c confined) Mount(ctx context.Context, r mount.Request) error {
	if err := c.dir.Check(r.Target); err != nil {
		return err
	}
	return c.Mounter.Mount(ctx, r)
}

func (c confined) Bind(ctx context.Context, r mount.BindRequest) error {
	if err := c.dir.Check(r.Target); err != nil {
		return err
	}
	return c.Mounter.Bind(ctx, r)
}

func (c confined) Unmount(ctx context.Context, target string) error {
	if err := c.dir.Check(target); err != nil {
		return err
	}
	return c.Mounter.Unmount(ctx, target)
}

func (c confined) Trim(ctx context.Context, r mount.TrimRequest) (mount.Trimmed, error) {
	if err := c.dir.Check(r.Target); err != nil {
		return mount.Trimmed{}, err
	}
	return c.Mounter.Trim(ctx, r)
}

func (c confined) Grow(ctx context.Context, r mount.GrowRequest) error {
	if err := c.dir.Check(r.Target); err != nil {
		return err
	}
	return c.Mounter.Grow(ctx, r)
}
