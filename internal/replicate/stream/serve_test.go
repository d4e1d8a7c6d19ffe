package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"berth.dev/berth/internal/replicate/limit"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// receive asks a server for a stream.
func (e ends) receive(ctx context.Context, address string, to *pool) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	l, err := stream.Dial(ctx, conn, e.beta, "alpha", e.packer)
	if err != nil {
		return err
	}
	_, err = stream.Receive(ctx, l, e.ask, to, stream.Options{})
	return err
}

func TestAServerSendsToManyAndKeepsOneNodeFromTakingAll(t *testing.T) {
	content := random(5 * wire.MaxData)
	e := newEnds(t, content)
	opened, release := make(chan struct{}, 9), make(chan struct{})
	e.from.source = func(_ context.Context, rest []byte) io.Reader {
		opened <- struct{}{}
		<-release
		return bytes.NewReader(rest)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	ended := make(chan error, 9)
	server := &stream.Server{
		Identity: e.alpha, Packer: e.packer, Stock: e.from, Streams: 2,
		Options: stream.Options{Pace: func(wire.Want) stream.Pacer { return limit.NewLimits().Gate(0) }},
		Ended:   func(_ string, _ stream.Sent, err error) { ended <- err },
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()

	pools, done := []*pool{newPool(e.to.snapshots), newPool(e.to.snapshots)}, make(chan error, 2)
	for _, p := range pools {
		go func() { done <- e.receive(t.Context(), listener.Addr().String(), p) }()
		<-opened
	}
	third := e.receive(t.Context(), listener.Addr().String(), e.to)
	if wire.ReasonOf(third) != wire.Busy || stream.After(third).Next != stream.Later {
		t.Errorf("the third stream of a node that may have two: %v", third)
	}
	close(release)
	check(t, errors.Join(<-done, <-done))
	for _, p := range pools {
		if !bytes.Equal(p.snapshots[target], content) {
			t.Error("other bytes arrived")
		}
	}
	for range 3 {
		if err := <-ended; err != nil && wire.ReasonOf(err) != wire.Busy {
			t.Errorf("a stream ended with %v", err)
		}
	}
	cancel()
	if err := <-served; !errors.Is(err, context.Canceled) {
		t.Errorf("the server ended with %v", err)
	}
}
