//go:build root

package san

import (
	"context"
	"strings"
	"testing"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/process"
	"berth.dev/berth/lab/internal/progress"
)

// TestTGTServesItsUnitsAndServesThemAgainAfterARestart needs root; it looks at the target
// with the initiator of libiscsi, which needs no kernel.
func TestTGTServesItsUnitsAndServesThemAgainAfterARestart(t *testing.T) {
	programs := map[string]string{"tgtd": "tgt", "iscsi-ls": "libiscsi-bin"}
	if err := guest.InstallPackages(t.Context(), progress.Discard, guest.Missing(programs)); err != nil {
		t.Fatal(err)
	}
	net, err := network.Create(t.Context(), "san-test")
	if err != nil {
		t.Fatal(err)
	}
	clean := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if err := net.Destroy(clean); err != nil {
			t.Error(err)
		}
	})
	if err := net.HoldSAN(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	s, err := Create(Place{Dir: t.TempDir(), NetNS: net.Path()}, Settings{Kind: TGT})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Down(clean); err != nil {
			t.Error(err)
		}
	})
	do := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err = s.Add(t.Context(), 64<<20)
	do("adding a unit while the target is off", err)
	do("starting", s.On(t.Context()))
	wantUnits(t, net, 1)
	_, err = s.Add(t.Context(), 32<<20)
	do("adding a unit while the target is on", err)
	wantUnits(t, net, 2)
	before := s.record.Process.PID
	do("restarting", s.Restart(t.Context()))
	if s.record.Process.PID == before {
		t.Error("the target is the same process after a restart")
	}
	wantUnits(t, net, 2)
	first := s.LUNs()[0]
	do("removing a unit", s.Remove(t.Context(), 1))
	do("taking away what is not offered", s.engine().withdraw(t.Context(), first))
	wantUnits(t, net, 1)
	if err := s.Delay(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "lio") {
		t.Errorf("latency: %v, want which kind has it", err)
	}
}

// wantUnits looks at the target from inside the lab's network.
func wantUnits(t *testing.T, net *network.Network, want int) {
	t.Helper()
	out, err := process.Output(t.Context(), process.Command{
		Path: "iscsi-ls", Args: []string{"--show-luns", "iscsi://" + network.SANAddress.String()}, NetNS: net.Path()})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(out), "DIRECT_ACCESS"); got != want {
		t.Errorf("%d units, want %d:\n%s", got, want, out)
	}
}
