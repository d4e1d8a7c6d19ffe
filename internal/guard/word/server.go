package word

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/guard/keep"
)

// Verb is what a request asks for.
type Verb string

const (
	// Open asks whether an epoch may begin, and registers it.
	Open Verb = "open"
	// Close says that an epoch was closed and its volume unmounted.
	Close Verb = "close"
	// Closed says that every epoch was closed.
	Closed Verb = "closed"
	// Status asks how the guard stands.
	Status Verb = "status"
)

// request of a client.
type request struct {
	Verb  Verb        `json:"verb"`
	Epoch guard.Epoch `json:"epoch,omitzero"`
}

// answer of the guard.
type answer struct {
	// Reason is empty, or why the request was refused; Message says it to people. A Message
	// without a Reason is an error of the machine.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Warning string `json:"warning,omitempty"`

	Status keep.Status `json:"status,omitzero"`
}

const (
	// longest is how many bytes a request may have.
	longest = 64 << 10
	// asking is how long a client may take to send its request.
	asking = 10 * time.Second
)

// Keeper is the guard as the agent sees it.
type Keeper interface {
	// Heard gets the control group of the process that sent a request, before the request is carried out. It is
	// empty if that process is in no pod.
	Heard(agent string)
	Open(e guard.Epoch) (warning string, err error)
	Close(e guard.Epoch) error
	Closed() error
	Status() keep.Status
}

// Server answers agents.
type Server struct {
	Keeper Keeper
	// CgroupOf returns the control group of a process of a pod, and none of a process of the machine itself.
	CgroupOf func(pid int) (string, error)
}

// Listen makes the socket. It replaces that of a guard that has died.
func Listen(ctx context.Context, socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the guard's socket: %w", err)
	}
	if conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket); err == nil {
		conn.Close()
		return nil, fmt.Errorf("another guard serves %s: only one may run on a node", socket)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the socket of a guard that has died: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("making the guard's socket: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("protecting the guard's socket: %w", err)
	}
	return l, nil
}

// Serve answers until ctx ends. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var answers sync.WaitGroup
	defer answers.Wait()
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accepting the agent's word: %w", err)
		}
		answers.Go(func() {
			defer conn.Close()
			cut := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer cut()
			s.answer(conn)
		})
	}
}

func (s *Server) answer(conn net.Conn) {
	pid, err := peer(conn)
	if err != nil {
		return // it is told nothing
	}
	_ = conn.SetReadDeadline(time.Now().Add(asking))
	var r request
	if err := json.NewDecoder(io.LimitReader(conn, longest)).Decode(&r); err != nil {
		_ = json.NewEncoder(conn).Encode(answer{Message: "reading the request: " + err.Error()})
		return
	}
	var a answer
	a.Warning, err = s.carryOut(r, conn, pid)
	if refused, ok := errors.AsType[*keep.RefusedError](err); ok {
		a.Reason = string(refused.Reason)
	}
	if err != nil {
		a.Message = err.Error()
	}
	a.Status = s.Keeper.Status()
	_ = json.NewEncoder(conn).Encode(a) // a client that has gone asks again
}

func (s *Server) carryOut(r request, conn net.Conn, pid int) (warning string, err error) {
	agent, err := s.CgroupOf(pid)
	if err = errors.Join(err, connected(conn)); err != nil {
		return "", fmt.Errorf("finding the control group of the agent: %w", err)
	}
	s.Keeper.Heard(agent)
	switch r.Verb {
	case Open:
		if err := valid(r.Epoch); err != nil {
			return "", err
		}
		return s.Keeper.Open(r.Epoch)
	case Close:
		return "", s.Keeper.Close(r.Epoch)
	case Closed:
		return "", s.Keeper.Closed()
	case Status:
		return "", nil
	default:
		return "", fmt.Errorf("the guard does not know the request %q", r.Verb)
	}
}

// valid refuses an epoch whose volume the kernel could not find again.
func valid(e guard.Epoch) error {
	for _, device := range []string{e.Holding.Device, e.Holding.Files} {
		var major, minor uint32
		if device == "" {
			continue
		}
		_, _ = fmt.Sscanf(device, "%d:%d", &major, &minor)
		if fmt.Sprintf("%d:%d", major, minor) != device {
			return fmt.Errorf("%q is no number of a device, such as 253:4", device)
		}
	}
	if e.Volume == "" || e.Epoch.IsZero() || e.Holding.Device == "" {
		return errors.New("an epoch has a volume, a number, an id and a device")
	}
	if h := e.Holding; h.Root != "" && (!filepath.IsAbs(h.Root) || filepath.Clean(h.Root) != h.Root || h.Root == "/" || h.Files == "" || h.Block) {
		return fmt.Errorf("a tree has a directory inside its filesystem, not %q, a number of its files' device, and no block device", h.Root)
	}
	return nil
}

// peer returns the process at the other end, if it is root's or the guard's own user's.
func peer(conn net.Conn) (pid int, err error) {
	var cred *unix.Ucred
	err = control(conn, func(fd int) (err error) {
		cred, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	})
	if err != nil {
		return 0, err
	}
	if cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		return 0, fmt.Errorf("user %d may not speak to the guard", cred.Uid)
	}
	return int(cred.Pid), nil
}

// connected returns an error if the other end was closed. The kernel closes that of a process that ends before another
// process gets its number. So as long as it is open, what was found by the number is of the process that asks.
func connected(conn net.Conn) error {
	return control(conn, func(fd int) error {
		end := []unix.PollFd{{Fd: int32(fd)}} //nolint:gosec // a file number
		_, err := unix.Poll(end, 0)
		switch {
		case end[0].Revents&unix.POLLHUP != 0:
			return errors.New("it has gone")
		case errors.Is(err, unix.EINTR):
			return nil
		}
		return err
	})
}

// control calls f with the descriptor of a connection.
func control(conn net.Conn, f func(fd int) error) error {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return errors.New("the guard is asked on unix sockets only")
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = f(int(fd)) })
	return errors.Join(err, failed)
}
