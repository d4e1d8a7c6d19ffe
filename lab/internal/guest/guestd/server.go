package main

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"berth.dev/berth/lab/internal/guest/wire"
)

// tetherTimeout is how long a tethered guest waits for its first session.
const tetherTimeout = time.Minute

// server answers exec sessions.
type server struct {
	token string
	// onTetherLost ends the guest; nil if it is not tethered.
	onTetherLost func()
	tether       sync.Once
	tetherTimer  *time.Timer
}

func newServer(plan wire.Plan) *server {
	s := &server{token: plan.Token}
	if plan.Tethered {
		s.onTetherLost = powerOff
		s.tetherTimer = time.AfterFunc(tetherTimeout, powerOff)
	}
	return s
}

func (s *server) serve(ctx context.Context, listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accepting exec sessions: %w", err)
		}
		if err != nil {
			logf("accepting exec session: %v", err)
			continue
		}
		go s.answer(ctx, conn)
	}
}

// answer carries out one session. Its connection is the client's life line.
func (s *server) answer(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	request, err := s.authenticate(conn)
	if err != nil {
		logf("exec session: %v", err)
		return
	}
	out := wire.NewWriter(conn)
	if err := out.Write(wire.Started, nil); err != nil {
		return
	}
	if len(request.Argv) == 0 { // a probe; it is no tether
		_ = out.WriteJSON(wire.Exited, wire.Result{})
		return
	}
	defer s.holdTether()()
	session := newSession(request, conn, out)
	session.finish(session.run(ctx))
}

func (s *server) authenticate(conn net.Conn) (wire.Request, error) {
	var request wire.Request
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return request, err
	}
	kind, payload, err := wire.Read(conn)
	if err != nil {
		return request, fmt.Errorf("reading the request: %w", err)
	}
	if kind != wire.Start {
		return request, fmt.Errorf("the first frame is of kind %q", kind)
	}
	if err := json.Unmarshal(payload, &request); err != nil {
		return request, fmt.Errorf("reading the request: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(request.Token), []byte(s.token)) != 1 {
		return request, errors.New("wrong token")
	}
	return request, conn.SetReadDeadline(time.Time{})
}

// holdTether makes the first session of a tethered guest its tether. It returns
// the function to call at the session's end.
func (s *server) holdTether() func() {
	release := func() {}
	if s.onTetherLost == nil {
		return release
	}
	s.tether.Do(func() {
		s.tetherTimer.Stop()
		release = s.onTetherLost
	})
	return release
}
