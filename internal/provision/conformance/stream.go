package conformance

import (
	"context"
	"errors"
	"io"
	"os"

	"berth.dev/berth/internal/provision"
)

// Stream is a stream of a copy as it was sent, with what its sender says of it.
type Stream struct {
	provision.StreamHeader
	Bytes []byte
}

// Send has a copy sent, and keeps the stream.
func Send(ctx context.Context, r provision.Replicator, q provision.SendRequest) (s Stream, err error) {
	state, err := r.State(ctx, q.Volume)
	if err != nil {
		return s, err
	}
	if s.StreamHeader, err = state.Header(r.Abilities(), q); err != nil {
		return s, err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return s, err
	}
	defer reader.Close()
	sent := make(chan error, 1)
	go func() {
		defer writer.Close()
		sent <- r.Send(ctx, q, writer)
	}()
	s.Bytes, err = io.ReadAll(reader)
	return s, errors.Join(err, <-sent)
}

// Receive feeds a stream to a copy.
func Receive(ctx context.Context, r provision.Replicator, s Stream) error {
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer writer.Close()
		_, _ = writer.Write(s.Bytes)
	}()
	err = r.Receive(ctx, s.StreamHeader, reader)
	_ = reader.Close()
	<-written
	return err
}
