package zfs

import (
	"context"
	"fmt"
	"time"

	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/provision/reading"
	"berth.dev/berth/internal/provision/zfs/zpool"
	"berth.dev/berth/internal/run"
)

// reader asks ZFS and the kernel, and keeps their answers.
type reader struct {
	config   Config
	tool     zpool.Tool
	poolTool zpool.PoolTool
	engine   *engine.Engine[*zpool.Facts]
	state    state
}

// lookForVolumes reads the zpools again if the kernel shows a zvol that is not known:
// each of Berth's zvols has a device. So nodes whose zpools are for something else pay
// nothing for volumes that are elsewhere. The kernel does not show datasets, so
// lookForVolumes also reads the zpools again in which Berth has datasets.
func (r *reader) lookForVolumes(ctx context.Context) error {
	if err := r.engine.RefreshDue(ctx); err != nil { // with zpools that just came
		return err
	}
	behind := r.state.staleDatasets(r.config.Now().Add(-recent))
	if !r.shown() {
		behind = true
		r.engine.ChangedAll()
	}
	if !behind {
		return nil
	}
	return r.engine.RefreshDue(ctx)
}

// lookForSnapshots reads the zpools again that may hold snapshots of Berth's: those with
// volumes of Berth's.
func (r *reader) lookForSnapshots(ctx context.Context) error {
	if err := r.lookForVolumes(ctx); err != nil {
		return err
	}
	r.state.staleOurs(r.config.Now().Add(-recent))
	return r.engine.RefreshDue(ctx)
}

// recent is how long a zpool is not read again for a missing volume or snapshot: a caller
// that takes a snapshot asks several times in a row whether it is there.
const recent = 2 * time.Second

// shown says whether all zvols are known.
func (r *reader) shown() bool {
	zvols, err := r.config.Devices.Zvols()
	return err == nil && r.state.knows(zvols)
}

// refresh reads one zpool and puts the result into the state. The caller holds the zpool's
// lock. It does not ask a suspended zpool: the query might never return.
func (r *reader) refresh(ctx context.Context, name string) {
	var asked reading.Moment
	r.engine.With(name, func(z *zpool.Facts) {
		if z != nil && z.Answers(r.config.Now()) == nil && !z.Asking {
			z.Asking, asked = true, r.engine.Moment()
		}
	})
	if asked == 0 {
		return
	}
	z, err := r.query(ctx, name)
	if err == nil {
		r.state.apply(z, asked, r.config.Now())
		r.engine.With(name, r.seeClutter)
		return
	}
	r.engine.With(name, func(z *zpool.Facts) {
		if z != nil && ctx.Err() == nil {
			z.Silent = err
			r.engine.Touch(z)
		}
	})
}

// query asks ZFS for a report of a zpool. Snapshots matter only in a zpool with volumes of
// Berth's: in others there may be thousands.
func (r *reader) query(ctx context.Context, name string) (*zpool.Facts, error) {
	whole := true
	r.engine.With(name, func(z *zpool.Facts) { whole = z == nil || z.Read.IsZero() || len(z.Datasets) > 0 })
	z, err := r.list(ctx, name, whole)
	if err == nil && !whole && len(z.Datasets) > 0 {
		return r.list(ctx, name, true)
	}
	return z, err
}

// askOf runs a query on a zpool. Until it has an answer, the zpool is not read again.
func (r *reader) askOf(ctx context.Context, name string, c run.Command) ([]byte, error) {
	asking := func(yes bool) {
		r.engine.With(name, func(z *zpool.Facts) {
			if z != nil {
				z.Asking = yes
			}
		})
	}
	asking(true)
	return r.ask(ctx, c, func() { asking(false) })
}

func (r *reader) list(ctx context.Context, name string, snapshots bool) (*zpool.Facts, error) {
	out, err := r.askOf(ctx, name, r.tool.ListCommand(name, snapshots))
	if err != nil {
		return nil, fmt.Errorf("asking ZFS for a report: %w", err)
	}
	rows, err := zpool.Parse(out)
	if err != nil {
		return nil, err
	}
	return zpool.New(rows)
}
