package zfs

import (
	"context"
	"errors"
	"fmt"
	"os"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/replica"
	"berth.dev/berth/internal/provision/zfs/sendstream"
	"berth.dev/berth/internal/provision/zfs/zpool"
	"berth.dev/berth/internal/run"
)

func (r *keeper) tool() zpool.CopyTool { return zpool.CopyTool{Tool: r.p.tool} }

// query asks ZFS about one copy.
func (r *keeper) query(ctx context.Context, c run.Command) ([]byte, error) {
	out, err := r.p.ask(ctx, c, func() {})
	if err != nil {
		return nil, fmt.Errorf("%w: asking ZFS about a copy: %w", provision.ErrUnavailable, err)
	}
	return out, nil
}

// Send implements provision.Replicator. The program zfs writes into the pipe itself.
func (r *Replicator) Send(ctx context.Context, q provision.SendRequest, pipe *os.File) error {
	r.count(q, 1) // the points stay from the moment at which they are looked up
	defer r.count(q, -1)
	state, err := r.State(ctx, q.Volume)
	if err != nil {
		return err
	}
	if _, err := state.Header(r.Abilities(), q); err != nil {
		return err
	}
	base, target, err := r.names(ctx, q)
	if err != nil {
		return err
	}
	command := r.tool().SendCommand(base, target)
	if q.Resume != "" {
		if err := r.checkToken(ctx, q.Resume, base, target); err != nil {
			return err
		}
		command = r.tool().ResumeCommand(q.Resume)
	}
	command.Out = pipe
	if _, err := r.p.config.Runner.Query(ctx, command); err != nil {
		return fmt.Errorf("sending point %v of volume %s: %w", q.Target, q.Volume, err)
	}
	return nil
}

// names returns the full names of the snapshots that a stream is made of.
func (r *keeper) names(ctx context.Context, q provision.SendRequest) (base, target string, err error) {
	name, err := r.locate(ctx, q.Volume)
	if err != nil {
		return "", "", err
	}
	err = zpool.NotFound(q.Volume)
	r.p.engine.With(name, func(z *zpool.Facts) {
		if target, err = zpool.CopiesIn(z).PointAt(q.Volume, q.Target); err == nil && !q.Base.IsZero() {
			base, err = zpool.CopiesIn(z).PointAt(q.Volume, q.Base)
		}
	})
	return base, target, err
}

// guids asks for those of snapshots: an empty name has 0.
func (r *keeper) guids(ctx context.Context, names ...string) (guids []uint64, err error) {
	var asked []string
	for _, name := range names {
		if name != "" {
			asked = append(asked, name)
		}
	}
	known := map[string]uint64{}
	if len(asked) > 0 {
		out, err := r.query(ctx, r.tool().NamedCommand(asked...))
		if err != nil {
			return nil, err
		}
		if known, err = zpool.Guids(out); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		guids = append(guids, known[name])
	}
	return guids, nil
}

// checkToken refuses a token that would send anything but these snapshots.
func (r *keeper) checkToken(ctx context.Context, token, base, target string) error {
	guids, err := r.guids(ctx, base, target)
	if err != nil {
		return err
	}
	return sendstream.CheckToken(token, sendstream.Token{From: guids[0], To: guids[1], Name: target})
}

// count counts the streams that read the points of a request.
func (r *keeper) count(q provision.SendRequest, by int) {
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
	defer replica.Until(ctx, pipe.SetReadDeadline)()
	if err := h.Check(); err != nil {
		return err
	}
	if !r.begin(h.Volume) {
		return fmt.Errorf("%w: a stream of volume %s is being received", provision.ErrInUse, h.Volume)
	}
	defer r.end(h.Volume)
	name, err := r.prepare(ctx, h)
	if err != nil {
		return err
	}
	guid, err := r.fill(ctx, name, h, pipe)
	if err == nil {
		err = r.finish(ctx, h, guid)
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return context.Cause(ctx)
	case errors.Is(err, errAfter), errors.Is(err, provision.ErrNoSpace): // the rest would be of no use
		_ = r.alter(context.WithoutCancel(ctx), h.Volume, func(c *zpool.Copy, _ provision.Volume) (replica.Record, error) {
			return c.Abort(r.p.config.Now()), nil
		})
	}
	return err
}

// may returns why the stream must not be applied.
func (r *Replicator) may(h provision.StreamHeader, dirty bool) func(*zpool.Copy, provision.Volume) error {
	return func(c *zpool.Copy, v provision.Volume) error {
		if h.Format != r.Abilities().Format {
			return fmt.Errorf("%w: a stream of format %.80q", provision.ErrConflict, h.Format)
		}
		return c.May(h, v, dirty)
	}
}

// prepare notes the stream, and bounds the room that it may take.
func (r *Replicator) prepare(ctx context.Context, h provision.StreamHeader) (name string, err error) {
	l, err := r.lock(ctx, h.Volume)
	if err != nil {
		return "", err
	}
	dirty, err := r.dirty(ctx, l.zpool, h.Volume)
	if err != nil {
		l.unlock()
		return "", err
	}
	return l.zpool, r.carryOut(ctx, l, h.Volume, func(p zpool.Planner, z *zpool.Facts) ([]zpool.Step, error) {
		return zpool.CopyPlanner{Planner: p}.Receive(zpool.CopiesIn(z), h, r.may(h, dirty))
	})
}

// finish makes what was received a point of the copy, if it still may be.
func (r *Replicator) finish(ctx context.Context, h provision.StreamHeader, guid uint64) error {
	l, err := r.lock(ctx, h.Volume)
	if err != nil {
		return err
	}
	dirty, err := r.dirty(ctx, l.zpool, h.Volume)
	if err != nil {
		l.unlock()
		return err
	}
	return r.carryOut(ctx, l, h.Volume, func(p zpool.Planner, z *zpool.Facts) ([]zpool.Step, error) {
		if zpool.CopiesIn(z).HasPoint(h.Volume, h.Target) {
			return nil, nil // the command that wrote the record only seemed to fail
		}
		return zpool.CopyPlanner{Planner: p}.Received(zpool.CopiesIn(z), h, guid, r.may(h, dirty))
	})
}
