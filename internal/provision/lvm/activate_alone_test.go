package lvm_test

import (
	"sync/atomic"
	"testing"
	"time"

	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

func TestNoVolumeIsActivatedAtTheStartWhoseGroupOrIDIsInDoubt(t *testing.T) {
	for name, doubt := range map[string]func(groups map[string]*lvmtest.Group){
		"another group holds a volume of the id": func(groups map[string]*lvmtest.Group) {
			groups["vg-b"].Volumes["pvc-1"] = &lvmtest.Volume{Extents: 1, Tags: []string{"berth.dev/volume=pvc-1"}}
		},
		"the group is exported": func(groups map[string]*lvmtest.Group) { groups[vg.Name].Exported = true },
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			host := rebooted("pvc-1")
			host.AddGroup("vg-b", 10)
			host.Edit(func(groups map[string]*lvmtest.Group) string {
				doubt(groups)
				return ""
			})
			counter, c := counted(host)
			p, _ := start(t, c)
			if _, err := p.Report(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.Wait()
			if got := counter.Counts()["lvchange"]; got != 0 {
				t.Errorf("%d processes activated volumes", got)
			}
		}))
	}
}

// Two commands of LVM that change one group at a time would wait for each other in LVM.
func TestAnActivationAndAnotherChangeOfAGroupRunOneAfterTheOther(t *testing.T) {
	deleted := []string{"berth.dev/wiping=pvc-1", "berth.dev/wipe=Zero"}
	for name, activate := range map[string]func(*testing.T, *lvm.Provisioner){
		"at the start": func(t *testing.T, p *lvm.Provisioner) { poolOf(t, p, vg) },
		"when a deleted volume is wiped": func(t *testing.T, p *lvm.Provisioner) {
			poolOf(t, p, vg)
			settle(t, p)
		},
		"when a caller asks for the volume": func(t *testing.T, p *lvm.Provisioner) {
			if _, err := p.Get(t.Context(), "pvc-1"); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			host := rebooted("pvc-1")
			_, c := counted(host)
			p, _ := start(t, c)
			switch name {
			case "when a deleted volume is wiped":
				host.On("/dev/vg-a/pvc-1", func(v *lvmtest.Volume) { v.Tags = deleted })
			case "when a caller asks for the volume":
				poolOf(t, p, vg)
				p.Wait()
				host.Deactivate("/dev/vg-a/pvc-1")
			}
			var activating atomic.Bool
			began := false
			disturb(host, func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
				switch {
				case c.Operation == "lvcreate" && activating.Load():
					t.Error("a volume is made while another is activated")
				case c.Operation == "lvchange" && !began:
					began = true
					activating.Store(true)
					defer activating.Store(false)
					go func() { _, _ = p.Create(t.Context(), request("pvc-2", 1)) }()
					<-time.After(time.Second) // it has begun, and waits
				}
				return do()
			})
			activate(t, p)
			p.Wait()
			if !began {
				t.Error("nothing was activated")
			}
		}))
	}
}
