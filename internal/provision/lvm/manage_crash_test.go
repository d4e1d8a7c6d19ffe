package lvm_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

func TestAProcessMayEndAtAnyEffectOfManagingPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for at := 1; ; at++ {
			m := bareMachine("sda", "sdb")
			dying := &crash{at: at}
			m.Around = dying.around
			n := m.boot(t, m)
			ended := false
			stage := func(what string, met provision.Reason) {
				for range 5 {
					g, p, err := n.ensure(t, 50)
					switch {
					case err != nil && !dying.dead():
						t.Fatalf("effect %d: %s: %v", at, what, err)
					case err != nil && ended:
						t.Fatalf("effect %d: %s does not go on: %v", at, what, err)
					case err != nil:
						n.stop()
						ended, m.Around = true, nil
						n = m.boot(t, m)
					case g.Reason == provision.PoolAsAsked && p.Reason == met:
						return
					}
				}
				t.Fatalf("effect %d: %s does not come to an end", at, what)
			}
			stage("making", provision.PoolAsAsked)
			m.plug("sdc")
			stage("growing", provision.PoolAsAsked)
			m.PutForeignThin(vg.Name, "pool", "theirs", "", 1000*unit)
			m.On("/dev/vg-a/theirs", func(v *lvmtest.Volume) { v.Data = 180 * unit })
			if !dying.dead() || ended {
				mustReport(t, n)
			}
			stage("filling", provision.PoolAsAsked)
			if got := m.devices(); !slices.Equal(got, []string{"/dev/sda", "/dev/sdb", "/dev/sdc"}) {
				t.Fatalf("effect %d: the group is made of %v", at, got)
			}
			if p := poolOf(t, n.Provisioner, thin); p.Total != 230*unit || p.Problem != "" {
				t.Fatalf("effect %d: the pool is %+v", at, p)
			}
			n.stop()
			if !ended {
				if effects := 2 * 6; at != effects+1 {
					t.Errorf("the story has %d effects, want %d", at-1, effects)
				}
				return
			}
		}
	})
}
