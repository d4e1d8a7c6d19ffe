package zfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs/sendstream"
	"berth.dev/berth/internal/provision/zfs/zpool"
	"berth.dev/berth/internal/run"
)

// errAfter says that bytes follow the end of a stream.
var errAfter = fmt.Errorf("%w: something follows the end of the stream", provision.ErrInvalid)

// scarce is how many bytes may be left for a copy whose stream found no room.
const scarce = 2 << 20

// fill receives a stream into a strand, and returns the guid of the snapshot that it makes. It takes as
// long as the sender likes, so no lock is held.
func (r *Replicator) fill(ctx context.Context, name string, h provision.StreamHeader, pipe *os.File) (guid uint64, err error) {
	var into, base string
	var files bool
	err = zpool.NotFound(h.Volume)
	r.p.engine.With(name, func(z *zpool.Facts) { into, base, files, err = zpool.CopiesIn(z).Into(h) })
	if err != nil {
		return 0, err
	}
	guids, err := r.guids(ctx, base)
	if err != nil {
		return 0, err
	}
	record := make([]byte, sendstream.HeaderSize)
	if _, err := io.ReadFull(pipe, record); err != nil {
		return 0, fmt.Errorf("%w: the stream ends in its first record: %w", provision.ErrInvalid, err)
	}
	begin, err := sendstream.ReadBegin(record)
	if err != nil {
		return 0, err
	}
	wanted := sendstream.Wanted{Kind: sendstream.Volume, From: guids[0], Resumed: h.Resume != ""}
	if files {
		wanted.Kind = sendstream.Filesystem
	}
	if err := begin.Check(wanted); err != nil {
		return 0, err
	}
	failure := r.feed(r.tool().ReceiveCommand(into, base, files, wanted.Resumed), record, pipe)
	strand, _, _ := strings.Cut(into, "@")
	if err := r.learn(context.WithoutCancel(ctx), name, strand, into, failure == nil); err != nil && failure == nil {
		return 0, err
	}
	if failure != nil && !errors.Is(failure, errAfter) {
		failure = fmt.Errorf("%w: the stream of volume %s was not received: %w", r.class(context.WithoutCancel(ctx), strand), h.Volume, failure)
	}
	return begin.To, failure
}

// feed runs a command whose input is a record and the rest of a pipe.
func (r *Replicator) feed(c run.Command, record []byte, pipe *os.File) error {
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	c.In = out
	fed := make(chan error, 1)
	go func() { // ends with the pipe, or with what reads it
		_, err := in.Write(record)
		if err == nil {
			_, err = io.Copy(in, pipe)
		}
		fed <- errors.Join(err, in.Close())
	}()
	if _, err = r.p.config.Runner.Change(c); err == nil {
		if n, _ := out.Read(make([]byte, 1)); n > 0 { // it waits for the sender to end the stream
			err = errAfter
		}
	}
	_ = out.Close()
	_ = pipe.SetReadDeadline(time.Unix(1, 0))
	if err != nil {
		return err
	}
	return <-fed
}

// learn takes the present state of a strand into the facts. No reader reads the whole zpool meanwhile: one that began
// before the stream ended would put facts in their place that do not have it.
func (r *Replicator) learn(ctx context.Context, name, strand, snapshot string, whole bool) error {
	unlock, err := r.p.engine.UnitLocks.Share(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	names := []string{strand}
	if whole {
		names = append(names, snapshot)
	}
	out, err := r.query(ctx, r.tool().NamedCommand(names...))
	if err != nil {
		return err
	}
	rows, err := zpool.Parse(out)
	if err != nil {
		return err
	}
	r.p.engine.With(name, func(z *zpool.Facts) { zpool.CopiesIn(z).LearnStrand(strand, rows) })
	return nil
}

// class returns the class of the error of a stream that ZFS did not receive: the text of a message
// decides nothing.
func (r *Replicator) class(ctx context.Context, strand string) error {
	out, err := r.query(ctx, r.tool().NamedCommand(strand[:strings.LastIndexByte(strand, '/')]))
	if err != nil {
		return provision.ErrUnavailable
	}
	if left, err := zpool.Available(out); err != nil || left < scarce {
		return provision.ErrNoSpace
	}
	return provision.ErrInvalid
}
