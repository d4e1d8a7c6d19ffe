//go:build root

package network

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"berth.dev/berth/lab/internal/process"
)

// host is a process with a network namespace of its own, cabled as a native node is.
type host struct {
	name    string
	address netip.Addr
	ns      string
}

func cabled(t *testing.T, n *Network, name string, index int) host {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "infinity")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address, err1 := NodeAddress(index)
	mac, err2 := NodeMAC(index)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := n.Cable(t.Context(), name, cmd.Process.Pid, netip.PrefixFrom(address, 24), mac); err != nil {
		t.Fatal(err)
	}
	return host{name: name, address: address, ns: "/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/net"}
}

// reaches reports whether a host gets an answer: a refusal is one, too.
func (h host) reaches(ctx context.Context, to netip.Addr) bool {
	err := process.InNetNS(h.ns, func() error {
		dialer := net.Dialer{Timeout: 300 * time.Millisecond}
		conn, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(to, 9).String())
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	return err == nil || errors.Is(err, syscall.ECONNREFUSED)
}

func TestANodeLosesOnePartOfTheNetworkAndKeepsTheOthers(t *testing.T) {
	n := create(t)
	if err := n.HoldSAN(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	one, two, three := cabled(t, n, "node1", 1), cabled(t, n, "node2", 2), cabled(t, n, "node3", 3)
	all := map[Part]netip.Addr{API: Gateway, Peers: two.address, SAN: SANAddress}
	check := func(when string, lost ...Part) {
		t.Helper()
		for part, address := range all {
			if got := one.reaches(t.Context(), address); got == slices.Contains(lost, part) {
				t.Errorf("%s: node1 reaches %s: %v", when, part, got)
			}
		}
		if back := two.reaches(t.Context(), one.address); back == slices.Contains(lost, Peers) {
			t.Errorf("%s: node2 reaches node1: %v", when, back)
		}
		if !two.reaches(t.Context(), three.address) || !two.reaches(t.Context(), Gateway) || !two.reaches(t.Context(), SANAddress) {
			t.Errorf("%s: node2 has lost something, too", when)
		}
		got, err := n.Lost(t.Context(), "node1")
		if err != nil || !slices.Equal(got, lost) {
			t.Errorf("%s: lost parts are %v, %v; want %v", when, got, err, lost)
		}
	}
	check("at first")
	for _, part := range Parts {
		for range 2 {
			if err := n.Sever(t.Context(), "node1", part); err != nil {
				t.Fatal(err)
			}
		}
		check("without "+string(part), part)
		for range 2 {
			if err := n.Restore(t.Context(), "node1", part); err != nil {
				t.Fatal(err)
			}
		}
		check("with " + string(part) + " again")
	}
	for _, part := range Parts {
		if err := n.Sever(t.Context(), "node1", part); err != nil {
			t.Fatal(err)
		}
	}
	check("without any", Parts...)
}
