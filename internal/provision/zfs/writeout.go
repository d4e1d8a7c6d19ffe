package zfs

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/provision"
)

// writeOut has the kernel write what it keeps in memory for a volume, before a snapshot of
// it: ZFS does not hold filesystems still, and what a pod wrote a second ago would not be in
// it. It is done without the zpool's lock, since it takes as long as there is to write; what comes
// meanwhile may be in the snapshot or not, as after a loss of power.
func (p *Provisioner) writeOut(ctx context.Context, id string) error {
	dataset := ""
	p.state.each(func(z *zpool) {
		if name, d := z.volume(id); d != nil && z.usable(p.config.Now()) == nil {
			dataset = name
		}
	})
	if dataset == "" {
		return nil // the plan says why nothing can be taken of it
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.QueryTimeout, errNoAnswer)
	defer cancel()
	if err := p.config.Devices.WriteOut(ctx, dataset); err != nil {
		return fmt.Errorf("%w: writing out what volume %s has in memory: %w", provision.ErrUnavailable, id, err)
	}
	return nil
}
