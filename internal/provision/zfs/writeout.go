package zfs

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
)

// writeOut has the kernel write out the data that it keeps in memory for a volume, before a
// snapshot of the volume: ZFS does not freeze filesystems, and data that a pod wrote a second ago
// would not be in the snapshot. It does not take the zpool's lock, since it takes as long as there
// is data to write. Data that is written meanwhile may be in the snapshot or not, as after a loss
// of power. With the empty id there is nothing to write.
func (r *reader) writeOut(ctx context.Context, id string) error {
	dataset, files := "", false
	for _, z := range r.engine.All() {
		name, d := z.Volume(id)
		if d == nil || d.Files() && d.Filesystem == "" || z.Usable(r.config.Now()) != nil {
			continue // it was never used, or the plan says why it can have no snapshot
		}
		dataset, files = name, d.Files()
	}
	if dataset == "" {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, queryTimeout, engine.ErrNoAnswer)
	defer cancel()
	if err := r.config.Devices.WriteOut(ctx, dataset, files); err != nil {
		return fmt.Errorf("%w: writing out what volume %s has in memory: %w", provision.ErrUnavailable, id, err)
	}
	return nil
}
