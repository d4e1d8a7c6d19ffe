//go:build root

package san

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/guest/wire"
	"berth.dev/berth/lab/internal/network"
)

// fabric is a target and a guest that has two sessions with it, of initiators a and b.
type fabric struct {
	t    *testing.T
	san  *SAN
	node *guest.Machine
}

func newFabric(t *testing.T, s Settings) fabric {
	t.Helper()
	net, err := network.Create(t.Context(), "san-test")
	must(t, "making the network", err)
	clean := context.WithoutCancel(t.Context())
	t.Cleanup(func() { must(t, "removing the network", net.Destroy(clean)) })
	image, err := guest.GetImage(t.Context(), store(t))
	must(t, "getting the image", err)
	f := fabric{t: t}
	f.san, err = Create(Place{Dir: filepath.Join(t.TempDir(), "san"), NetNS: net.Path()}, s)
	must(t, "creating the target", err)
	t.Cleanup(func() { must(t, "removing the target", f.san.Down(clean)) })
	if s.Kind == LIO {
		tap, err := net.Tap(t.Context(), Machine)
		must(t, "connecting the target", err)
		must(t, "making the target's guest", f.san.MakeGuest(t.Context(), image, tap))
	} else {
		must(t, "giving the target its address", net.HoldSAN(t.Context(), true))
	}
	_, err = f.san.Add(t.Context(), 64<<20)
	must(t, "adding a unit", err)
	must(t, "starting the target", f.san.On(t.Context()))
	f.node = bootInitiator(t, net, image)
	must(t, "logging in", logIn(t.Context(), f.shell, "a", "b"))
	return f
}

func bootInitiator(t *testing.T, net *network.Network, image guest.Image) *guest.Machine {
	t.Helper()
	tap, err := net.Tap(t.Context(), "node1")
	must(t, "connecting node1", err)
	self, err := os.Executable()
	must(t, "finding this program", err)
	m, err := guest.Create(t.Context(), filepath.Join(t.TempDir(), "node1"), guest.Spec{
		Name: "node1", Image: image, CPUs: 2, Memory: 1 << 30, NetNS: net.Path(), Tap: tap,
		Seed: guest.Seed{
			Plan: wire.Plan{Network: &wire.Interface{
				MAC: "02:77:00:00:01:01", Address: "10.77.0.10/24", Gateway: network.Gateway.String()}},
			Files: append(InitiatorFiles("node1"), guest.File{Path: "/root/initiator", Mode: 0o755, Source: self}),
		},
	})
	must(t, "making node1", err)
	t.Cleanup(func() { must(t, "removing node1", m.Remove(context.WithoutCancel(t.Context()))) })
	must(t, "starting node1", m.PowerOn(t.Context()))
	ready, cancel := context.WithTimeout(t.Context(), lioBootTimeout)
	defer cancel()
	must(t, "booting node1", m.WaitReady(ready))
	return m
}

func store(t *testing.T) *artefact.Store {
	t.Helper()
	dir := os.Getenv("BERTH_LAB_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		must(t, "finding the cache", err)
		dir = filepath.Join(base, "berth-lab")
	}
	return &artefact.Store{Dir: dir}
}

func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (f fabric) shell(ctx context.Context, script string) error {
	return f.node.Pipe(ctx, strings.NewReader(script), "sh", "-eu")
}

// as runs the test's own program in the guest, as an initiator.
func (f fabric) as(initiator, verb string, args ...string) error {
	argv := append([]string{"env", "BERTH_LAB_INITIATOR=1", "/root/initiator", initiator, verb}, args...)
	_, err := f.node.Output(f.t.Context(), argv...)
	return err
}

func (f fabric) may(initiator, verb string, args ...string) {
	f.t.Helper()
	must(f.t, initiator+" "+verb+" "+strings.Join(args, " "), f.as(initiator, verb, args...))
}

func (f fabric) mayNot(initiator, verb string, args ...string) {
	f.t.Helper()
	if f.as(initiator, verb, args...) == nil {
		f.t.Fatalf("%s %s %s succeeded, and must not", initiator, verb, strings.Join(args, " "))
	}
}

// restart returns when both sessions work again.
func (f fabric) restart() {
	f.t.Helper()
	must(f.t, "restarting the target", f.san.Restart(f.t.Context()))
	limit, cancel := context.WithTimeout(f.t.Context(), 2*time.Minute)
	defer cancel()
	_, err := f.node.Output(limit, "sh", "-c", `for s in /sys/class/iscsi_session/session*; do
		until [ "$(cat $s/state)" = LOGGED_IN ]; do sleep 0.2; done; done`)
	must(f.t, "waiting for the sessions", err)
}

func TestReservationsThroughTheKernel(t *testing.T) {
	for name, persist := range map[string]bool{"persist": true, "are forgotten": false} {
		t.Run(name, func(t *testing.T) {
			f := newFabric(t, Settings{Kind: LIO, Persist: persist})
			f.may("a", "register", "a")
			f.may("a", "reserve", "a")
			f.may("a", "write", "from a")
			if got, err := f.san.LUNs()[0].head(16); err != nil || got != "from a" {
				t.Errorf("this machine reads %q (%v) from the unit's file", got, err)
			}
			f.mayNot("b", "write", "from b")
			f.may("b", "register", "b")
			f.may("b", "preempt", "a", "b")
			f.mayNot("a", "write", "from a, too late")
			f.may("b", "write", "from b")
			f.may("a", "register", "a")
			f.may("a", "abort", "b", "a")
			f.mayNot("b", "write", "from b, too late")
			f.restart()
			if persist {
				f.mayNot("b", "write", "from b after the restart")
			} else {
				f.may("b", "write", "from b after the restart")
			}
		})
	}
}

// The kernel always asks for registrations that persist, which tgtd refuses.
func TestTGTTakesNoRegistrationThroughTheKernel(t *testing.T) {
	f := newFabric(t, Settings{Kind: TGT})
	f.mayNot("a", "register", "a")
	f.may("b", "write", "from b")
}
