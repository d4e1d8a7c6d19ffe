package zfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs/sendstream"
	"berth.dev/berth/internal/provision/zfs/zpool"
	"berth.dev/berth/internal/run"
)

// dirty says whether a head that counts differs from the newest point. What pods have in memory does
// not show before it is written out and ZFS has ended the group of changes that it is in. The caller
// holds the lock of the id.
func (r *keeper) dirty(ctx context.Context, name, id string) (bool, error) {
	var head, since string
	var unpointed, files bool
	err := zpool.NotFound(id)
	r.p.engine.With(name, func(z *zpool.Facts) {
		head, since, unpointed, err = zpool.CopiesIn(z).Unsaved(id, r.p.config.Now())
		_, d := z.Volume(id)
		files = d != nil && d.Files()
	})
	if err != nil || since == "" {
		return unpointed, err
	}
	if err := r.p.writeOut(ctx, id); err != nil {
		return false, err
	}
	if _, err := r.query(ctx, r.p.poolTool.SyncCommand(name)); err != nil {
		return false, err
	}
	out, err := r.query(ctx, r.tool().WrittenCommand(head, since))
	if err != nil {
		return false, err
	}
	written, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return false, fmt.Errorf("%w: reading ZFS's report: %w", provision.ErrUnavailable, err)
	}
	if written == 0 || r.p.uses(zpool.Use{Dataset: head, Mounted: files}) {
		return written > 0, nil // what a pod has open may be written at any time
	}
	return r.differs(ctx, since, head)
}

// differs says whether anything in a head is another than in a snapshot. ZFS counts as written, too, what it changes in
// the head of a dataset itself: it makes its intent log anew whenever the dataset is opened, as for writing it out, and
// when its zpool is imported. No stream has that. So ZFS is asked for the stream of the difference, and its first two
// records tell. How much was written cannot tell: what one record takes depends on the disks and on the pool's options.
// A head that is open cannot be sent, and counts as one that differs, unless it was udev that had a look at it.
func (r *keeper) differs(ctx context.Context, since, head string) (bool, error) {
	for range 2 {
		differs, err := r.compare(ctx, since, head)
		if exit, is := errors.AsType[*run.ExitError](err); !is || !strings.Contains(exit.Stderr, zpool.Busy) {
			return differs, err
		}
		r.p.config.Devices.Settle(ctx, head)
	}
	return true, nil
}

func (r *keeper) compare(ctx context.Context, since, head string) (differs bool, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return false, fmt.Errorf("%w: making a pipe: %w", provision.ErrUnavailable, err)
	}
	command := r.tool().SendCommand(since, head)
	command.Out = write
	ended := make(chan error, 1)
	go func() {
		_, err := r.query(ctx, command)
		write.Close()
		if err != nil {
			read.Close() // a zfs that hangs is left behind, and keeps the other end open
		}
		ended <- err
	}()
	differs, err = sendstream.Differs(read)
	read.Close() // zfs need not send the rest
	if sent := <-ended; err != nil {
		return false, cmp.Or(sent, fmt.Errorf("%w: comparing head %s with %s: %w", provision.ErrUnavailable, head, since, err))
	}
	return differs, nil
}
