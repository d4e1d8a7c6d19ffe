//go:build platform

package copies_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/run"
)

// network is a network of its own, which delays and loses packets as netem is told.
type network struct {
	t    *testing.T
	name string
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{t: t, name: fmt.Sprintf("berth-link-%d", os.Getpid())}
	n.do("ip", "netns", "add", n.name)
	t.Cleanup(func() { n.do("ip", "netns", "delete", n.name) })
	n.within("ip", "link", "set", "lo", "up")
	n.within("tc", "qdisc", "add", "dev", "lo", "root", "netem")
	return n
}

func (n *network) do(program string, args ...string) {
	n.t.Helper()
	if _, err := (run.Exec{}).Change(run.Command{Operation: program, Program: program, Args: args}); err != nil {
		n.t.Errorf("%s %s: %v", program, strings.Join(args, " "), err)
	}
}

func (n *network) within(command ...string) {
	n.t.Helper()
	n.do("ip", append([]string{"netns", "exec", n.name}, command...)...)
}

// netem makes the network behave: "delay 20ms loss 5%".
func (n *network) netem(how string) {
	n.t.Helper()
	n.within(append(strings.Fields("tc qdisc change dev lo root netem"), strings.Fields(how)...)...)
}

// connect makes a connection in the network.
func (n *network) connect() (near, far net.Conn) {
	n.t.Helper()
	made := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends, since it is in another network
		made <- func() (err error) {
			into, err := os.Open("/run/netns/" + n.name)
			if err != nil {
				return err
			}
			defer into.Close()
			if err := unix.Setns(int(into.Fd()), unix.CLONE_NEWNET); err != nil {
				return err
			}
			listener, err := new(net.ListenConfig).Listen(context.WithoutCancel(n.t.Context()), "tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer listener.Close()
			if far, err = new(net.Dialer).DialContext(n.t.Context(), "tcp", listener.Addr().String()); err != nil {
				return err
			}
			near, err = listener.Accept()
			return err
		}()
	}()
	must(n.t, <-made)
	return near, far
}

func TestAStreamArrivesOverASlowLinkThatLosesPackets(t *testing.T) {
	w, n := newWorld(t), newNetwork(t)
	w.connect = n.connect
	n.netem("delay 20ms 5ms loss 3% rate 20mbit")
	w.alpha.take(1, strings.Repeat("what was written ", 1<<16))
	w.arrives(none, point(1))
	w.alpha.take(2, "other data")
	w.arrives(point(1), point(2))
	w.beta.has(point(1), point(2))
	w.idle()
}

// TestAStreamGoesOnAfterALinkThatWentSilent loses all packets in the middle of a stream: no end of it is closed,
// and only the peer's silence tells.
func TestAStreamGoesOnAfterALinkThatWentSilent(t *testing.T) {
	w, n := newWorld(t), newNetwork(t)
	w.connect, w.cut, w.lose = n.connect, 12, func() { n.netem("loss 100%") }
	w.alpha.take(1, strings.Repeat("what was written ", 1<<16))
	o := w.fetch(none, point(1))
	if then := stream.After(o.failedToo); o.received.Committed || then.Next != stream.GoOn {
		t.Fatalf("the receiver says %v, and then %s", o.failedToo, then.Next)
	}
	if o.failed == nil {
		t.Error("the sender takes the stream for sent")
	}
	w.cut = 0
	n.netem("loss 0%")
	w.arrives(none, point(1))
	w.beta.has(point(1))
	w.idle()
}
