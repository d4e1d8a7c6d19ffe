package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"berth.dev/berth/lab/internal/guest/wire"
	"berth.dev/berth/lab/internal/network"
)

// ExecRequest is a program to run in a guest.
type ExecRequest struct {
	Argv []string
	Env  []string // NAME=value, added to the guest's own
	Dir  string   // working directory; /root if empty
	// Stdin is read until its end or until the program ends; one read may then
	// still be under way. Nil is an empty input.
	Stdin          io.Reader
	Stdout, Stderr io.Writer // nil discards
	// Terminal runs the program on a terminal of the first size that is sent;
	// later ones resize it. Everything the program writes goes to Stdout.
	Terminal <-chan wire.Window
}

// ErrNotReady says that the machine does not answer.
var ErrNotReady = errors.New("it does not answer")

// Exec runs a program in the guest and returns its exit code, see
// [wire.Result]. An error means that the program's end is unknown. When ctx
// ends, the program is killed with its process group.
func (m *Machine) Exec(ctx context.Context, r ExecRequest) (int, error) {
	if len(r.Argv) == 0 {
		return 0, errors.New("running a program in a guest: no program given")
	}
	code, err := m.exec(ctx, r)
	if err != nil {
		return 0, fmt.Errorf("running %s on %s: %w", r.Argv[0], m.Spec.Name, err)
	}
	return code, nil
}

func (m *Machine) exec(ctx context.Context, r ExecRequest) (int, error) {
	if err := m.mustBeOn(); err != nil {
		return 0, err
	}
	request := wire.Request{Argv: r.Argv, Env: r.Env, Dir: r.Dir}
	if r.Terminal != nil {
		select {
		case w := <-r.Terminal:
			request.Window = &w
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	conn, err := m.connect(ctx, request, sessionTimeout)
	if err != nil {
		return 0, errors.Join(err, m.stopped(ctx))
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	in := newInput(conn)
	defer in.end()
	go in.copy(r.Stdin)
	go in.resize(r.Terminal)
	code, err := receive(conn, r, in)
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return code, err
}

func (m *Machine) mustBeOn() error {
	switch m.Power() {
	case Off:
		return errors.New("it is powered off")
	case Paused:
		return errors.New("it is paused")
	default:
		return nil
	}
}

const (
	// sessionTimeout is how long a running guest may take to answer: it may be
	// busy, or still boot.
	sessionTimeout = 30 * time.Second
	readyInterval  = 20 * time.Millisecond
)

// WaitReady waits until the guest has booted and answers exec sessions, or
// until it has powered itself off.
func (m *Machine) WaitReady(ctx context.Context) error {
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	for {
		if !m.Process.Alive() {
			return fmt.Errorf("waiting for %s: it powered itself off: %s", m.Spec.Name, m.lastWords())
		}
		if m.hasBooted() {
			conn, err := m.connect(ctx, wire.Request{}, sessionTimeout)
			if err != nil {
				return fmt.Errorf("waiting for %s: %w", m.Spec.Name, errors.Join(err, m.stopped(ctx)))
			}
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %s", m.Spec.Name, context.Cause(ctx), m.lastWords())
		case <-tick.C:
		}
	}
}

// hasBooted reports whether the guest has said so. Probing by connections
// would be slower: QEMU holds those that come too early for seconds.
func (m *directory) hasBooted() bool {
	info, err := os.Stat(filepath.Join(m.dir, readyFile))
	return err == nil && info.Size() > 0
}

// connect opens a session. QEMU accepts connections before the guest does, so
// only the guest's own answer counts.
func (m *Machine) connect(ctx context.Context, r wire.Request, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := network.Dial(ctx, m.Spec.NetNS, fmt.Sprintf("127.0.0.1:%d", m.ExecPort))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	r.Token = m.Plan.Token
	err = wire.NewWriter(conn).WriteJSON(wire.Start, r)
	if err == nil {
		err = expectStarted(conn)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return conn, nil
}

func expectStarted(conn net.Conn) error {
	kind, _, err := wire.Read(conn)
	if err != nil {
		return err
	}
	if kind != wire.Started {
		return fmt.Errorf("answer of kind %q", kind)
	}
	return nil
}

func receive(conn io.Reader, r ExecRequest, in *input) (int, error) {
	streams := map[wire.Kind]io.Writer{wire.Stdout: r.Stdout, wire.Stderr: r.Stderr}
	for {
		kind, payload, err := wire.Read(conn)
		if err != nil {
			return 0, fmt.Errorf("the connection to the guest broke: %w", err)
		}
		if kind == wire.Exited {
			var result wire.Result
			if err := json.Unmarshal(payload, &result); err != nil {
				return 0, fmt.Errorf("reading the result: %w", err)
			}
			return result.Code, nil
		}
		if kind == wire.Taken {
			in.taken()
		}
		if w := streams[kind]; w != nil {
			if _, err := w.Write(payload); err != nil {
				return 0, fmt.Errorf("passing on output: %w", err)
			}
		}
	}
}
