package btrfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/provision/replica"
)

// Send implements provision.Replicator. The kernel writes the stream.
func (r *Replicator) Send(ctx context.Context, q provision.SendRequest, pipe *os.File) error {
	if q.Resume != "" {
		return fmt.Errorf("%w: a stream of btrfs cannot be resumed", provision.ErrInvalid)
	}
	out, err := duplicate(pipe)
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() { // ends when the other end of the pipe is closed, at the latest
		r.count(q, 1) // the points stay from the moment at which they are looked up
		err := r.send(context.WithoutCancel(ctx), q, out)
		_ = out.Close()
		r.count(q, -1)
		sent <- err
	}()
	select {
	case err = <-sent:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *Replicator) send(ctx context.Context, q provision.SendRequest, pipe *os.File) error {
	state, err := r.State(ctx, q.Volume)
	if err != nil {
		return err
	}
	if _, err := state.Header(r.Abilities(), q); err != nil {
		return err
	}
	fsid, err := r.locate(ctx, q.Volume)
	if err != nil {
		return err
	}
	target, base, dir, err := r.subvolumes(fsid, q)
	if err != nil {
		return err
	}
	f, err := r.config.Open(fsid, false)
	if err != nil {
		return fmt.Errorf("%w: %w", provision.ErrUnavailable, err)
	}
	defer f.Close()
	if err := f.Send(dir, target, base, pipe); err != nil {
		return fmt.Errorf("sending point %v of volume %s: %w", q.Target, q.Volume, err)
	}
	return nil
}

// duplicate returns a descriptor of its own for a pipe: the caller may close the pipe while the kernel
// still writes.
func duplicate(pipe *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(pipe.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), pipe.Name()), nil //nolint:gosec // a descriptor
}

// subvolumes returns the subvolumes of the points that a stream reads.
func (r *Replicator) subvolumes(fsid string, q provision.SendRequest) (target, base kernel.Subvolume, dir string, err error) {
	err = fmt.Errorf("%w: %s", provision.ErrNotFound, q.Volume)
	r.engine.With(fsid, func(u *facts) {
		if u == nil || u.volumes[q.Volume] == nil || u.volumes[q.Volume].held == nil {
			return
		}
		c := &copied{dir: volumesArea + "/" + q.Volume, held: u.volumes[q.Volume].held}
		c.volume.ID = q.Volume
		var e *entry
		if e, dir, err = c.place(q.Target); err != nil {
			return
		}
		target = e.Subvolume
		if q.Base.IsZero() {
			return
		}
		if e, _, err = c.place(q.Base); err == nil {
			base = e.Subvolume
		}
	})
	return target, base, dir, err
}

// count counts the streams that read the points of a request.
func (r *Replicator) count(q provision.SendRequest, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sending[q.Volume] == nil {
		r.sending[q.Volume] = map[lineage.Point]int{}
	}
	for _, p := range []lineage.Point{q.Base, q.Target} {
		if r.sending[q.Volume][p] += by; r.sending[q.Volume][p] == 0 {
			delete(r.sending[q.Volume], p)
		}
	}
}

// Receive implements provision.Replicator.
func (r *Replicator) Receive(ctx context.Context, h provision.StreamHeader, pipe *os.File) error {
	if err := h.Check(); err != nil {
		return err
	}
	if !r.begin(h.Volume) {
		return fmt.Errorf("%w: a stream of volume %s is being received", provision.ErrInUse, h.Volume)
	}
	defer r.end(h.Volume)
	if err := r.prepare(ctx, h); err != nil {
		return err
	}
	err := r.fill(ctx, h, pipe)
	if err == nil {
		err = r.finish(ctx, h)
	}
	if errors.Is(err, provision.ErrInvalid) || errors.Is(err, provision.ErrNoSpace) { // it cannot be resumed, so it is of no use
		_ = r.alter(context.WithoutCancel(ctx), h.Volume, func(c *copied) (replica.Record, error) {
			return c.held.Abort(r.config.Now()), nil
		})
	}
	return err
}

// may returns why the stream must not be applied.
func (r *Replicator) may(c *copied, h provision.StreamHeader) error {
	switch {
	case h.Format != r.Abilities().Format:
		return fmt.Errorf("%w: a stream of format %.80q", provision.ErrConflict, h.Format)
	case h.Resume != "":
		return fmt.Errorf("%w: a stream of btrfs cannot be resumed", provision.ErrConflict)
	}
	dirty, err := c.changed()
	if err != nil {
		return err
	}
	return errors.Join(c.held.May(h, c.volume, dirty), unused(c.f, c.entry.root.ID, h.Volume, "/"+c.dir))
}

// prepare notes the stream, and makes the subvolume that it is applied to. What an earlier stream left
// is not named any more then.
func (r *Replicator) prepare(ctx context.Context, h provision.StreamHeader) error {
	err := r.alter(ctx, h.Volume, func(c *copied) (replica.Record, error) {
		if err := r.may(c, h); err != nil {
			return c.held.Record, err
		}
		if err := c.admit(h.Limits, c.entry.Size-c.held.receives(c.entry.Size)); err != nil {
			return c.held.Record, err
		}
		return c.held.Begin(h, c.held.Free(c.held.numbers()), r.config.Now()), nil
	})
	if err != nil {
		return err
	}
	return r.alter(ctx, h.Volume, func(c *copied) (replica.Record, error) {
		if !c.held.Resumes(h) {
			return c.held.Record, fmt.Errorf("%w: the stream of volume %s was aborted", provision.ErrConflict, h.Volume)
		}
		at := placeDir(c.dir, c.held.Receiving.Place)
		var s kernel.Subvolume
		var of kernel.Subvolume
		from := ""
		if !h.Base.IsZero() {
			e, dir, err := c.place(h.Base)
			if err != nil {
				return c.held.Record, err
			}
			of, from = e.Subvolume, dir
		}
		var err error
		return c.held.Record, each(
			c.f.Mark,
			func() error { return c.f.Make(at) },
			func() error { return c.entry.limit(c.f, c.tally.limit(c.entry)) },
			func() error {
				if from == "" {
					s, err = c.f.Subvolume(at)
				} else {
					s, err = c.f.Snapshot(from, of, at, false)
				}
				return err
			},
			func() error { return c.f.Count(s.ID, c.entry.Subvolume.ID, true) },
			func() error { return placed(r.config.Now(), h, c.held.Receiving.Place, s, nil).write(c.f, at) },
			c.f.Commit,
		)
	})
}

// placed is the record of the place that a stream is received into.
func placed(now time.Time, h provision.StreamHeader, place uint64, s kernel.Subvolume, pins map[uint64]int64) record {
	return record{ID: fmt.Sprint(place), Subvolume: s, Size: h.Size, Volume: h.Volume, Taken: now.UTC().Truncate(1e9), Pins: pins}
}

// fill applies the stream. It takes as long as the sender likes, so no lock is held.
func (r *Replicator) fill(ctx context.Context, h provision.StreamHeader, pipe *os.File) error {
	fsid, err := r.locate(ctx, h.Volume)
	if err != nil {
		return err
	}
	var into kernel.Subvolume
	var place uint64
	r.engine.With(fsid, func(u *facts) {
		if u != nil && u.volumes[h.Volume] != nil && u.volumes[h.Volume].held != nil && u.volumes[h.Volume].held.Resumes(h) {
			held := u.volumes[h.Volume].held
			if place = held.Receiving.Place; held.places[place] != nil {
				into = held.places[place].Subvolume
			}
		}
	})
	if into.ID == 0 {
		return fmt.Errorf("%w: the stream of volume %s was aborted", provision.ErrConflict, h.Volume)
	}
	f, err := r.config.Open(fsid, true)
	if err != nil {
		return fmt.Errorf("%w: %w", provision.ErrUnavailable, err)
	}
	defer f.Close()
	err = f.Apply(ctx, placeDir(volumesArea+"/"+h.Volume, place), into, !h.Base.IsZero(), pipe)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		err = fmt.Errorf("%w: the stream of volume %s takes more than its size allows: %w", provision.ErrNoSpace, h.Volume, err)
	}
	return err
}

// finish makes the subvolume a point of the copy, if it still may be.
func (r *Replicator) finish(ctx context.Context, h provision.StreamHeader) error {
	return r.alter(ctx, h.Volume, func(c *copied) (replica.Record, error) {
		if err := r.may(c, h); err != nil {
			return c.held.Record, err
		}
		if c.held.Receiving == nil || c.held.places[c.held.Receiving.Place] == nil {
			return c.held.Record, fmt.Errorf("%w: the stream of volume %s was aborted", provision.ErrConflict, h.Volume)
		}
		number := c.held.Receiving.Place
		n, err := c.held.Received(h, number, r.config.Now())
		if err != nil {
			return n, err
		}
		e, at := c.held.places[number], placeDir(c.dir, number)
		if err := e.sound(); err != nil {
			return n, err
		}
		quotas, err := kernel.Quotas(c.fsid)
		if err != nil {
			return n, err
		}
		group := c.entry.Subvolume.ID
		kept := min(provision.RoundUp(max(quotas[group].Taken, 1), unit), c.entry.Size)
		point, volume := placed(r.config.Now(), h, number, e.Subvolume, map[uint64]int64{group: kept}), c.entry.record
		volume.Filesystem = h.Filesystem
		return n, each(
			func() error { return c.f.Seal(at, e.Subvolume) },
			func() error { return point.write(c.f, at) },
			func() error {
				if volume.Filesystem == c.entry.Filesystem {
					return nil
				}
				return volume.write(c.f, c.dir)
			},
		)
	})
}
