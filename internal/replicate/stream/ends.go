package stream

import (
	"context"
	"io"
	"time"

	"berth.dev/berth/internal/replicate/wire"
)

// Stock is a node's snapshots, as a sender sees them.
type Stock interface {
	// Open prepares the stream that a peer asks for, and keeps its base and target from being deleted
	// until Close. want.To is the name in the peer's certificate. Open refuses a node that has no replica
	// of the volume (wire.NotReplica) and says when a snapshot is gone (wire.NoSnapshot) or the half
	// stream cannot be continued (wire.CannotResume), by an error that is a *wire.Error.
	//
	// Open may wait for a place: the peer hears Alive for up to ten minutes, and then gives up. What keeps it
	// waiting longer is wire.Busy.
	//
	// All of want is a peer's word. A token of ZFS names the snapshot to be sent, and every peer can make one
	// that names another volume's: Open must compare what the token names with want.Target before it
	// uses it.
	Open(ctx context.Context, want wire.Want) (Source, error)
}

// Source is a stream to be sent.
type Source interface {
	// Header is what the sender has: epoch and promise, base and target, form, format and size. Send
	// fills in the rest.
	Header() wire.Offer
	// Read returns io.EOF only if the stream is whole. A pipe ends with io.EOF too when the command that
	// fills it dies, so a Source over a pipe looks at the command's end before it returns io.EOF. Read
	// returns soon after the context that was given to Open has ended.
	io.Reader
	// Close ends the stream, once. If committed is true, the receiver has the target now. If it is
	// false, the receiver may have it, and may ask for the rest.
	Close(committed bool) error
}

// Sink is the place in a node's pool for one volume's stream.
type Sink interface {
	// Half returns what an earlier stream left, false if there is nothing.
	Half(ctx context.Context) (Half, bool, error)
	// Discard deletes what Half returned.
	Discard(ctx context.Context) error
	// Begin prepares for the stream that was verified. It may refuse it for reasons of its own, by an
	// error that is a *wire.Error: it asks ownership.Receive, for which Verify has no record. Nothing of the
	// stream is visible before Commit. The pool bounds how much it takes: how long a stream is shows only
	// at its end, whatever the offer says.
	Begin(ctx context.Context, header Header) (Intake, error)
}

// Header is what a sink must know of a stream.
type Header struct {
	// Offer is as the sender made it. Its Promise is kept with the snapshot.
	Offer wire.Offer
	// Resume is where the stream goes on, zero if it begins.
	Resume wire.Resume
}

// Half is what a cut stream left in a pool.
type Half struct {
	// Stream names it, as in the offer of the stream that began it.
	Stream wire.Stream
	Resume wire.Resume
}

// Intake takes one stream.
type Intake interface {
	// Write takes the next bytes. It returns soon after the context that was given to Begin has ended.
	io.Writer
	// Durable is how many bytes of the whole stream would survive a crash, 0 if only the pool knows.
	Durable() uint64
	// Commit makes the snapshot and the sender's promise durable and visible, in one step. All bytes were
	// written and the hash of the whole stream agrees.
	Commit(ctx context.Context) error
	// Abort ends the stream without a snapshot. If keep is true, what was written is sound, and the pool
	// may keep it to go on later; if not, the pool deletes it. It is called also after Commit failed.
	Abort(keep bool) error
}

// Pacer holds a stream back.
type Pacer interface {
	// Wait returns when n more bytes may leave, or with an error when ctx ends.
	Wait(ctx context.Context, n int) error
}

// Progress is how far a stream is. All are bytes.
type Progress struct {
	// Offset is where this stream began: more than 0 for the rest of a half stream.
	Offset uint64
	// Raw bytes of the stream, and Wire bytes on the link, went through this end.
	Raw, Wire uint64
	// Passed and Durable are what the receiver says it has given to its pool.
	Passed, Durable uint64
	// Size is how many bytes will come, 0 if the sender could not tell.
	Size uint64
}

// Options are the same for both ends; the zero value is usable.
type Options struct {
	// Pace returns what holds back the stream of a request; it is the sender's. Nil is no limit.
	Pace func(wire.Want) Pacer
	// Progress is told after each frame, nil if the caller does not want to know. It must not wait.
	Progress func(Progress)
}

const (
	// idle is how long a peer may say nothing. It says Alive three times as often.
	idle = 30 * time.Second
	// stall is how long a peer may be alive without the stream moving. A pool that commits a transaction
	// group on a busy disk is silent for minutes.
	stall = 10 * time.Minute
	// opening is how long a peer has for handshake and Hello.
	opening = 10 * time.Second
	// parting is how long an end waits for its last words to be read.
	parting = 2 * time.Second
)
