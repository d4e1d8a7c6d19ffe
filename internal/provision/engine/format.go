package engine

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Formatter formats volumes, with functions of a backend.
type Formatter struct {
	IDs   *keyed.Locks[string]
	Tasks *run.Tasks
	// Get returns a volume whose device is there.
	Get func(ctx context.Context, id string) (provision.Volume, error)
	// Confirm, if set, looks at a volume's device, and returns why it must not be formatted.
	Confirm func(v provision.Volume) error
	Mkfs    provision.Mkfs
	// Record writes down, with the volume, that it has a filesystem. The caller has the lock of
	// the volume.
	Record func(ctx context.Context, v provision.Volume, filesystem string) error
	// View returns a volume as it is known now.
	View func(ctx context.Context, v provision.Volume) (provision.Volume, error)
}

// Format makes a filesystem and then records that it is there. It locks only the volume while
// mkfs runs: that may take long, and other changes need the unit.
func (f Formatter) Format(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	unlock, err := f.IDs.Lock(ctx, r.ID)
	if err != nil {
		return provision.Volume{}, err
	}
	return run.Do(ctx, f.Tasks, func(ctx context.Context) (provision.Volume, error) {
		defer unlock()
		return f.locked(ctx, r)
	})
}

func (f Formatter) locked(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	v, err := f.Get(ctx, r.ID)
	if err != nil {
		return provision.Volume{}, err
	}
	if met, err := r.Met(v); met || err != nil {
		return v, err
	}
	if f.Confirm != nil {
		if err := f.Confirm(v); err != nil {
			return provision.Volume{}, err
		}
	}
	if r.Makes() {
		if err := f.Mkfs(ctx, v, r.Filesystem, r.Options); err != nil {
			return provision.Volume{}, fmt.Errorf("making %s on volume %s: %w", r.Filesystem, v.ID, err)
		}
	}
	if err := f.Record(ctx, v, r.Filesystem); err != nil {
		return provision.Volume{}, fmt.Errorf("recording %s on volume %s: %w", r.Filesystem, v.ID, err)
	}
	return f.View(ctx, v)
}
