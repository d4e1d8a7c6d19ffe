package word

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
}

func (k *keeper) Open(e guard.Epoch, agent string) (string, error) {
	k.open, k.agent = append(k.open, e), agent
	return "a warning", k.err
}
func (k *keeper) Close(guard.Epoch) error   { k.open = nil; return k.err }
func (k *keeper) Closed(agent string) error { k.closed, k.agent = true, agent; return k.err }
func (k *keeper) Status() keep.Status {
	return keep.Status{Message: "well", Open: k.open, Fenced: k.fenced}
}
func (k *keeper) cgroup(int) (string, error) { return "/kubepods/pod-agent/one", nil }

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
	if len(k.open) != 1 || k.open[0] != epoch() || k.agent != "/kubepods/pod-agent/one" {
		t.Errorf("the guard was told %v by %s", k.open, k.agent)
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
