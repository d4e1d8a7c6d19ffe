package word

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"
	testingclock "k8s.io/utils/clock/testing"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/guard/keep"
	"berth.dev/berth/internal/lineage"
)

// keeper remembers what it was told.
type keeper struct {
	open   []guard.Epoch
	agent  string
	closed bool
	fenced bool
	err    error
	// unknown is why the control group of the agent cannot be found, and looks is called before it is.
	unknown error
	looks   func()
	// heard, if set, is told of each word.
	heard chan struct{}
}

func (k *keeper) Heard(agent string) { k.agent = agent }
func (k *keeper) Open(e guard.Epoch) (string, error) {
	k.open = append(k.open, e)
	return "a warning", k.err
}
func (k *keeper) Close(guard.Epoch) error { k.open = nil; return k.err }
func (k *keeper) Closed() error {
	k.closed = true
	if k.heard != nil {
		k.heard <- struct{}{}
	}
	return k.err
}

func (k *keeper) Status() keep.Status {
	return keep.Status{Message: "well", Open: k.open, Fenced: k.fenced}
}
func (k *keeper) cgroup(int) (string, error) {
	if k.looks != nil {
		k.looks()
	}
	return agent, k.unknown
}

const agent = "/kubepods/pod-agent/one"

// serve serves a keeper until the test ends.
func serve(t *testing.T, k *keeper) Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "guard") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "run", "guard.sock")
	l, err := Listen(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&Server{Keeper: k, CgroupOf: k.cgroup}).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(dir)
	})
	return Client{Socket: socket}
}

func epoch() guard.Epoch {
	return guard.Epoch{Volume: "v", Epoch: lineage.Epoch{Number: 7, ID: "id"}, Holding: guard.Holding{Device: "253:4", Block: true}}
}

func TestTheAgentsWordReachesTheGuard(t *testing.T) {
	k := &keeper{}
	c := serve(t, k)
	if warning, err := c.Open(t.Context(), epoch()); err != nil || warning != "a warning" {
		t.Errorf("%q, %v", warning, err)
	}
	if len(k.open) != 1 || k.open[0] != epoch() {
		t.Errorf("the guard was told %v", k.open)
	}
	if s, err := c.Status(t.Context()); err != nil || s.Message != "well" || len(s.Open) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := errors.Join(c.Close(t.Context(), epoch()), c.Closed(t.Context())); err != nil || k.open != nil || !k.closed {
		t.Errorf("%v, %v, %v", err, k.open, k.closed)
	}
}

func TestARefusalKeepsItsReasonAndAnErrorItsMessage(t *testing.T) {
	k := &keeper{err: &keep.RefusedError{Reason: guard.Fenced, Message: "close first"}}
	c := serve(t, k)
	_, err := c.Open(t.Context(), epoch())
	if refused, ok := errors.AsType[*keep.RefusedError](err); !ok || refused.Reason != guard.Fenced || err.Error() != "close first" {
		t.Error(err)
	}
	k.err = errors.New("no space")
	if err := c.Closed(t.Context()); err == nil || err.Error() != "the guard: no space" {
		t.Error(err)
	}
}

func TestAnEpochThatTheKernelCouldNotFindIsRefused(t *testing.T) {
	k := &keeper{}
	c := serve(t, k)
	for name, change := range map[string]func(*guard.Epoch){
		"no volume":              func(e *guard.Epoch) { e.Volume = "" },
		"no epoch":               func(e *guard.Epoch) { e.Epoch = lineage.Epoch{} },
		"no device":              func(e *guard.Epoch) { e.Holding.Device = "" },
		"a number alone":         func(e *guard.Epoch) { e.Holding.Device = "253" },
		"a tree by a short path": func(e *guard.Epoch) { e.Holding = guard.Holding{Device: "0:4", Files: "0:5", Root: "a"} },
		"a tree and a device":    func(e *guard.Epoch) { e.Holding = guard.Holding{Device: "0:4", Files: "0:5", Root: "/a", Block: true} },
		"a path":                 func(e *guard.Epoch) { e.Holding.Device = "/dev/sda" },
		"another form":           func(e *guard.Epoch) { e.Holding.Device = "0253:4" },
		"more than a number":     func(e *guard.Epoch) { e.Holding.Device = "253:4 " },
		"files of no device":     func(e *guard.Epoch) { e.Holding.Files = "x" },
		"a tree that is a pool":  func(e *guard.Epoch) { e.Holding = guard.Holding{Device: "0:4", Files: "0:5", Root: "/"} },
		"a tree beyond its pool": func(e *guard.Epoch) { e.Holding = guard.Holding{Device: "0:4", Files: "0:5", Root: "/a/../.."} },
		"a tree without files":   func(e *guard.Epoch) { e.Holding = guard.Holding{Device: "0:4", Root: "/a"} },
	} {
		e := epoch()
		change(&e)
		if _, err := c.Open(t.Context(), e); err == nil || len(k.open) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	tree := epoch()
	tree.Holding = guard.Holding{Device: "0:4", Files: "0:5", Root: "/a"}
	if _, err := c.Open(t.Context(), tree); err != nil || len(k.open) != 1 {
		t.Errorf("a tree: %v", err)
	}
}

// calls are all that an agent asks.
func calls(t *testing.T, c Client) map[Verb]func() error {
	return map[Verb]func() error{
		Open:   func() error { _, err := c.Open(t.Context(), epoch()); return err },
		Close:  func() error { return c.Close(t.Context(), epoch()) },
		Closed: func() error { return c.Closed(t.Context()) },
		Status: func() error { _, err := c.Status(t.Context()); return err },
	}
}

// An agent that has replaced another one asks how the guard stands long before it opens an epoch.
func TestEachRequestTellsTheGuardWhoItsAgentIs(t *testing.T) {
	k := &keeper{}
	for verb, call := range calls(t, serve(t, k)) {
		k.agent = "/kubepods/pod-agent-before/one"
		if err := call(); err != nil || k.agent != agent {
			t.Errorf("after %q the agent is %q: %v", verb, k.agent, err)
		}
	}
}

func TestNothingIsHeardFromAnAgentWhoseControlGroupIsNotKnown(t *testing.T) {
	k := &keeper{unknown: errors.New("no such process")}
	for verb, call := range calls(t, serve(t, k)) {
		if err := call(); err == nil || !strings.Contains(err.Error(), "no such process") || k.open != nil || k.closed || k.agent != "" {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

// Another process may have its number by now, and would be spared in its place.
func TestAProcessThatHasEndedIsNotHeard(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "end")
		ends[i], err = net.FileConn(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	k := &keeper{looks: func() { ends[0].Close() }}
	if err := json.NewEncoder(ends[0]).Encode(request{Verb: Closed}); err != nil {
		t.Fatal(err)
	}
	(&Server{Keeper: k, CgroupOf: k.cgroup}).answer(ends[1])
	if k.closed || k.agent != "" {
		t.Errorf("its word counts: %v, and the agent is %q", k.closed, k.agent)
	}
	ends[1].Close()
}

func TestWhatTheGuardDoesNotUnderstandIsRefused(t *testing.T) {
	k := &keeper{}
	c := serve(t, k)
	if _, err := c.ask(t.Context(), request{Verb: "burn"}); err == nil || !strings.Contains(err.Error(), `does not know the request "burn"`) {
		t.Error(err)
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", c.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("open!")); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(conn); err != nil || !strings.Contains(string(said), "reading the request: invalid") {
		t.Errorf("it says %q, %v", said, err)
	}
}

// Only a unix socket tells which process asks.
func TestAClientThatTheKernelDoesNotNameIsToldNothing(t *testing.T) {
	k := &keeper{}
	s := &Server{Keeper: k, CgroupOf: k.cgroup}
	client, server := net.Pipe()
	go func() {
		s.answer(server)
		server.Close()
	}()
	if err := json.NewEncoder(client).Encode(request{Verb: Closed}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("it was heard: %v", err)
	}
	if k.closed {
		t.Error("its word counts")
	}
	gone, err := (&net.Dialer{}).DialContext(t.Context(), "unix", serve(t, k).Socket)
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	if pid, err := peer(gone); err == nil {
		t.Errorf("a connection that has ended is of process %d", pid)
	}
}

// broken is a listener that accepts nothing.
type broken struct{ net.Listener }

func (broken) Accept() (net.Conn, error) { return nil, os.ErrDeadlineExceeded }

func TestAGuardThatCannotListenSaysWhy(t *testing.T) {
	dir := t.TempDir()
	file, full := filepath.Join(dir, "file"), filepath.Join(dir, "full")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.MkdirAll(filepath.Join(full, "sub"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for socket, says := range map[string]string{
		filepath.Join(file, "guard.sock"): "making the directory of the guard's socket",
		full:                              "removing the socket of a guard that has died",
		filepath.Join(dir, strings.Repeat("x", 200)): "making the guard's socket",
	} {
		if l, err := Listen(t.Context(), socket); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, %v", says, l, err)
		}
	}
	if err := (&Server{}).Serve(t.Context(), broken{}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it serves: %v", err)
	}
}

func TestAnAgentWhoseGuardDiesBeforeItAnswersHasNoAnswer(t *testing.T) {
	dir, err := os.MkdirTemp("", "guard")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	c := Client{Socket: filepath.Join(dir, "guard.sock")}
	l, err := Listen(t.Context(), c.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			conn.Close()
		}
	}()
	for verb, call := range calls(t, c) {
		if err := call(); err == nil {
			t.Errorf("%s is answered", verb)
		}
	}
}

func TestAnAgentGivesItsWordAtOnceAndSaysWhyItCannot(t *testing.T) {
	said := make(chan string, 10)
	log := funcr.New(func(_, args string) { said <- args }, funcr.Options{})
	now := testingclock.NewFakeClock(time.Unix(0, 0))
	vouch := func(ctx context.Context, c Client) (end func()) {
		ctx, cancel := context.WithCancel(ctx)
		var loop sync.WaitGroup
		loop.Go(func() { c.Vouch(ctx, now, log) })
		return func() { cancel(); loop.Wait() }
	}
	end := vouch(t.Context(), Client{Socket: "/nowhere/guard.sock"})
	if text := <-said; !strings.Contains(text, "does not have the agent's word") {
		t.Errorf("it says %s", text)
	}
	end()
	heard := make(chan struct{}, 10)
	k := &keeper{fenced: true, heard: heard}
	end = vouch(t.Context(), serve(t, k))
	<-heard
	now.Step(asked)
	<-heard // the first word was taken
	end()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	vouch(ended, Client{Socket: "/nowhere/guard.sock"})()
	if len(said) > 0 {
		t.Errorf("it says %s", <-said)
	}
}

func TestAnAgentWithoutEpochsGivesItsWordWheneverTheGuardIsFenced(t *testing.T) {
	k := &keeper{}
	c := serve(t, k)
	if err := c.vouch(t.Context()); err != nil || k.closed {
		t.Errorf("a guard that is not fenced: %v, %v", err, k.closed)
	}
	k.fenced = true
	if err := c.vouch(t.Context()); err != nil || !k.closed {
		t.Errorf("a guard that is: %v, %v", err, k.closed)
	}
	if err := (Client{Socket: "/nowhere/guard.sock"}).vouch(t.Context()); err == nil {
		t.Error("without a guard nothing is wrong")
	}
}

func TestOnlyOneGuardServesANodeAndADeadOnesSocketIsReplaced(t *testing.T) {
	c := serve(t, &keeper{})
	if _, err := Listen(t.Context(), c.Socket); err == nil || !strings.Contains(err.Error(), "another guard") {
		t.Error(err)
	}
	dead := filepath.Join(filepath.Dir(c.Socket), "dead")
	l, err := Listen(t.Context(), dead)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	again, err := Listen(t.Context(), dead)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dead); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	again.Close()
	if _, err := (Client{Socket: dead}).Status(t.Context()); err == nil || !strings.Contains(err.Error(), "does its pod run") {
		t.Error(err)
	}
}
