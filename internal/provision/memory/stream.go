package memory

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/replica"
)

// A stream begins with how many bytes the target has in common with its base, and how many bytes it
// has beyond these. Frames with those bytes follow, the last one empty. Each number and each frame has a
// checksum that includes its position, and the last frame has one of all bytes.
const (
	format  = "memory-1"
	frame   = 16
	largest = 1 << 26
)

// send writes a stream; its first bytes are left out if the receiver has them.
func send(ctx context.Context, pipe *os.File, base, target string, skip int) error {
	defer replica.Until(ctx, pipe.SetWriteDeadline)()
	same := 0
	for same < min(len(base), len(target)) && base[same] == target[same] {
		same++
	}
	rest := target[same:]
	if skip > len(rest) {
		return fmt.Errorf("%w: the stream has %d bytes, and the receiver says %d", provision.ErrConflict, len(rest), skip)
	}
	err := write(pipe, 0, binary.BigEndian.AppendUint64(nil, uint64(same)))
	if err == nil {
		err = write(pipe, 0, binary.BigEndian.AppendUint64(nil, uint64(len(rest))))
	}
	for at := skip; err == nil && at < len(rest); at += frame {
		err = write(pipe, at, []byte(rest[at:min(at+frame, len(rest))]))
	}
	if err == nil {
		err = write(pipe, len(rest), nil)
	}
	if err == nil {
		err = write(pipe, 0, binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(rest))))
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

func write(w io.Writer, at int, part []byte) error {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(part))) //nolint:gosec // a frame
	sum := crc32.ChecksumIEEE(append([]byte(strconv.Itoa(at)), part...))
	_, err := w.Write(append(binary.BigEndian.AppendUint32(head, sum), part...))
	return err
}

func read(r io.Reader, at int) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, fmt.Errorf("%w: the stream ends too early: %w", provision.ErrInvalid, err)
	}
	part := make([]byte, min(binary.BigEndian.Uint32(head[:]), frame+1))
	if _, err := io.ReadFull(r, part); err != nil {
		return nil, fmt.Errorf("%w: the stream ends too early: %w", provision.ErrInvalid, err)
	}
	if len(part) > frame || crc32.ChecksumIEEE(append([]byte(strconv.Itoa(at)), part...)) != binary.BigEndian.Uint32(head[4:]) {
		return nil, errDamaged
	}
	return part, nil
}

var errDamaged = fmt.Errorf("%w: the stream is damaged", provision.ErrInvalid)

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
	base, err := r.prepare(ctx, h)
	whole := ""
	if err == nil {
		whole, err = r.fill(ctx, h, pipe, base)
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return context.Cause(ctx)
	case errors.Is(err, errDamaged): // what was received before may be damaged, too
		_ = r.alter(ctx, "Abort", h.Volume, func(f facts) (replica.Record, error) { return f.Record.Abort(r.now()), nil })
		return err
	case err != nil:
		return err
	}
	return r.finish(ctx, h, whole)
}

// prepare notes the stream in the record, with the place that it is received into, and returns the
// content of its base. If ctx ends first, the change goes on without its caller, so base may be read only after success.
func (r *Replicator) prepare(ctx context.Context, h provision.StreamHeader) (string, error) {
	var base string
	err := r.alter(ctx, "Receive", h.Volume, func(f facts) (replica.Record, error) {
		if h.Format != format {
			return f.Record, fmt.Errorf("%w: a stream of format %.80q", provision.ErrConflict, h.Format)
		}
		if err := f.May(h, f.volume, f.dirty); err != nil {
			return f.Record, err
		}
		if place, ok := f.Record.Place(h.Base); ok {
			base = r.content(h.Volume, place)
		}
		if h.Resume == "" {
			return f.Begin(h, f.Free(f.there), r.now()), nil
		}
		if !f.Resumes(h) || h.Resume != strconv.Itoa(len(f.part)) {
			return f.Record, fmt.Errorf("%w: the stream does not go on where that of volume %s ended", provision.ErrConflict, h.Volume)
		}
		return f.Begin(h, f.Receiving.Place, r.now()), nil
	})
	if err != nil {
		return "", err
	}
	return base, nil
}

func (r *Replicator) content(id string, place uint64) string {
	r.p.disks.mu.Lock()
	defer r.p.disks.mu.Unlock()
	return r.p.disks.held(id).places[place]
}

// counts reads numbers that have bounds.
func counts(pipe io.Reader, bounds ...int) (numbers []int, err error) {
	for _, bound := range bounds {
		part, err := read(pipe, 0)
		if err != nil {
			return nil, err
		}
		if len(part) != 8 || binary.BigEndian.Uint64(part) > uint64(bound) { //nolint:gosec // a length
			return nil, errDamaged
		}
		numbers = append(numbers, int(binary.BigEndian.Uint64(part))) //nolint:gosec // bounded
	}
	return numbers, nil
}

// fill reads the stream into its place, and returns the whole content.
func (r *Replicator) fill(ctx context.Context, h provision.StreamHeader, pipe io.Reader, base string) (string, error) {
	numbers, err := counts(pipe, len(base), largest)
	if err != nil {
		return "", err
	}
	f, err := r.facts(h.Volume)
	if err != nil {
		return "", err
	}
	if f.Receiving == nil {
		return "", fmt.Errorf("%w: the stream of volume %s was aborted", provision.ErrConflict, h.Volume)
	}
	place, all := f.Receiving.Place, strings.Builder{}
	all.WriteString(f.part)
	for {
		part, err := read(pipe, all.Len())
		if err != nil {
			return "", err
		}
		if len(part) == 0 {
			break
		}
		if all.Write(part); all.Len() > numbers[1] {
			return "", errDamaged
		}
		if err := r.effect(ctx, Fill, h.Volume, func(_ *Disks, _ *pool, kept *held) { kept.places[place] = all.String() }); err != nil {
			return "", err
		}
	}
	sum, err := read(pipe, 0)
	if err != nil {
		return "", err
	}
	if all.Len() != numbers[1] || len(sum) != 4 || binary.BigEndian.Uint32(sum) != crc32.ChecksumIEEE([]byte(all.String())) {
		return "", errDamaged
	}
	if n, _ := pipe.Read(make([]byte, 1)); n > 0 {
		return "", errDamaged
	}
	return base[:numbers[0]] + all.String(), nil
}

// finish makes the content a point of the copy, if it still may be.
func (r *Replicator) finish(ctx context.Context, h provision.StreamHeader, whole string) error {
	return r.alter(ctx, "Receive", h.Volume, func(f facts) (replica.Record, error) {
		if err := f.May(h, f.volume, f.dirty); err != nil {
			return f.Record, err
		}
		place := f.Free(f.there)
		n, err := f.Received(h, place, r.now())
		if err != nil {
			return n, err
		}
		if err := r.effect(ctx, Place, h.Volume, func(_ *Disks, _ *pool, kept *held) { kept.places[place] = whole }); err != nil {
			return n, err
		}
		if h.Filesystem == f.volume.Filesystem {
			return n, nil
		}
		return n, r.effect(ctx, Adopt, h.Volume, func(_ *Disks, p *pool, _ *held) {
			v := p.volumes[h.Volume]
			v.Filesystem = h.Filesystem
			p.volumes[h.Volume] = v
		})
	})
}
