//go:build root

package network

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"

	"berth.dev/berth/lab/internal/process"
)

func create(t *testing.T) *Network {
	t.Helper()
	n, err := Create(t.Context(), "network-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return n
}

func TestNetworkIsCompletedByASecondCreateAndGoneAfterDestroy(t *testing.T) {
	n := create(t)
	if _, err := n.Tap(t.Context(), "node-1"); err != nil {
		t.Fatal(err)
	}
	again, err := Create(t.Context(), "network-test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.IsCut(t.Context(), "node-1"); err != nil {
		t.Errorf("the tap did not survive a second create: %v", err)
	}
	for range 2 {
		if err := n.Destroy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open("network-test"); !errors.Is(err, ErrNotExist) {
		t.Errorf("opening a destroyed network: %v", err)
	}
	if _, err := os.Stat(n.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", n.Path(), err)
	}
}

func TestCreateReplacesTheNamespaceFileOfAnInterruptedCreate(t *testing.T) {
	path := filepath.Join(namespaceDir, "berth-lab-network-test")
	if err := os.MkdirAll(namespaceDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o444); err != nil {
		t.Fatal(err)
	}
	create(t)
	if _, err := Open("network-test"); err != nil {
		t.Error(err)
	}
}

func TestCutLastsUntilHealAndTapDoesNotHealIt(t *testing.T) {
	n := create(t)
	if _, err := n.Tap(t.Context(), "node-1"); err != nil {
		t.Fatal(err)
	}
	check := func(when string, want bool) {
		t.Helper()
		got, err := n.IsCut(t.Context(), "node-1")
		if err != nil || got != want {
			t.Errorf("%s: cut is %v, %v; want %v", when, got, err, want)
		}
	}
	check("new tap", false)
	for _, step := range []struct {
		when string
		do   func() error
		want bool
	}{
		{"cut", func() error { return n.Cut(t.Context(), "node-1") }, true},
		{"cut, then tap again", func() error { _, err := n.Tap(t.Context(), "node-1"); return err }, true},
		{"healed", func() error { return n.Heal(t.Context(), "node-1") }, false},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.when, err)
		}
		check(step.when, step.want)
	}
	if err := n.Cut(t.Context(), "nobody"); err == nil {
		t.Error("a node without a tap was cut")
	}
}

func TestServerInsideIsReachedThroughDialAndNotFromOutside(t *testing.T) {
	n := create(t)
	var inside net.Listener
	err := process.InNetNS(n.Path(), func() (err error) {
		inside, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", netip.AddrPortFrom(APIService, 443).String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	conn, err := Dial(t.Context(), n.Path(), inside.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := netlink.LinkByName(bridge); err == nil {
		t.Error("the bridge is visible in the machine's own namespace")
	}
}

func TestRoutesToPodNetworksMayBeSetTwice(t *testing.T) {
	n := create(t)
	pods, err := PodNetwork(1)
	if err != nil {
		t.Fatal(err)
	}
	node, err := NodeAddress(1)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := n.Route(t.Context(), pods, node); err != nil {
			t.Fatal(err)
		}
	}
}
