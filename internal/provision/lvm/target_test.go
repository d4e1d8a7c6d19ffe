package lvm_test

import (
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// restarted returns a machine with an inactive thin pool and a volume in it. presence says
// whether its kernel has the target of thin pools.
func restarted(t *testing.T, presence lvmtest.Presence) *lvmtest.Host {
	t.Helper()
	host := thinHost()
	_, c := counted(host)
	p, stop := start(t, c)
	create(t, p, promised("pvc-1", 1))
	stop()
	for _, name := range []string{"/dev/vg-a/pvc-1", "/dev/" + thin.Name} {
		host.On(name, func(v *lvmtest.Volume) { v.Active = false })
	}
	host.Targets = map[string]lvmtest.Presence{"thin-pool": presence}
	return host
}

func TestTheKernelIsAskedToLoadTheModuleOfThinPools(t *testing.T) {
	t.Run("the provisioner activates a thin pool", func(t *testing.T) {
		_, c := counted(restarted(t, lvmtest.Unloaded))
		p, _ := start(t, c)
		create(t, p, promised("pvc-2", 1))
		if v, err := p.Get(t.Context(), "pvc-1"); err != nil || v.Problem != "" {
			t.Errorf("got %+v, %v", v, err)
		}
		if problem := poolOf(t, p, thin).Problem; problem != "" {
			t.Errorf("the problem is %q", problem)
		}
	})
	t.Run("the provisioner activates a thin volume", func(t *testing.T) {
		_, c := counted(restarted(t, lvmtest.Unloaded))
		p, _ := start(t, c)
		if v, err := p.Get(t.Context(), "pvc-1"); err != nil || v.Problem != "" {
			t.Errorf("got %+v, %v", v, err)
		}
	})
	t.Run("the provisioner makes a thin pool", func(t *testing.T) {
		m := bareMachine("sda")
		m.Targets = map[string]lvmtest.Presence{"thin-pool": lvmtest.Unloaded}
		mustEnsure(t, m.boot(t, m), 50, provision.PoolMade, provision.PoolMade)
	})
}

func TestAKernelWithoutThinPoolsIsSaidToLackThemAndNothingIsToBeRepaired(t *testing.T) {
	said := func(text string) bool {
		return strings.Contains(text, "modprobe dm-thin-pool") && strings.Contains(text, "/etc/modules-load.d") && !strings.Contains(text, "--repair")
	}
	t.Run("the provisioner activates a thin pool", func(t *testing.T) {
		_, c := counted(restarted(t, lvmtest.Missing))
		p, _ := start(t, c)
		if _, err := p.Create(t.Context(), promised("pvc-2", 1)); err == nil || !said(err.Error()) {
			t.Errorf("creating: %v", err)
		}
		if problem := poolOf(t, p, thin).Problem; !said(problem) {
			t.Errorf("the pool's problem is %q", problem)
		}
		if v, err := p.Get(t.Context(), "pvc-1"); err != nil || !said(v.Problem) {
			t.Errorf("got %+v, %v", v, err)
		}
	})
	t.Run("the provisioner makes a thin pool", func(t *testing.T) {
		m := bareMachine("sda")
		m.Targets = map[string]lvmtest.Presence{"thin-pool": lvmtest.Missing}
		if _, _, err := m.boot(t, m).ensure(t, 50); err == nil || !said(err.Error()) {
			t.Errorf("got %v", err)
		}
	})
}
