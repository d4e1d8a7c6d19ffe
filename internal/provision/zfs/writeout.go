package zfs

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/provision"
)

// writeOut has the kernel write what it keeps in memory for a volume, before a snapshot of
// it: ZFS does not hold filesystems still, and what a pod wrote a second ago would not be in
// it. It is done without the zpool's lock, since it takes as long as there is to write; what comes
// meanwhile may be in the snapshot or not, as after a loss of power. No volume, with the empty id,
// has nothing to write.
func (p *Provisioner) writeOut(ctx context.Context, id string) error {
	dataset, files := "", false
	p.state.each(func(z *zpool) {
		name, d := z.volume(id)
		if d == nil || d.files() && d.filesystem == "" || z.usable(p.config.Now()) != nil {
			return // nobody ever used it, or the plan says why nothing can be taken of it
		}
		dataset, files = name, d.files()
	})
	if dataset == "" {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.QueryTimeout, errNoAnswer)
	defer cancel()
	if err := p.config.Devices.WriteOut(ctx, dataset, files); err != nil {
		return fmt.Errorf("%w: writing out what volume %s has in memory: %w", provision.ErrUnavailable, id, err)
	}
	return nil
}
