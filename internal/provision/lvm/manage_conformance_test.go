package lvm_test

import (
	"fmt"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

func TestConformanceOfManagedPoolsOnPlayedLVM(t *testing.T) {
	conformance.RunManager(t, func(t *testing.T) conformance.Managed {
		m := bareMachine()
		n := m.boot(t, m)
		plugged := 0
		return conformance.Managed{
			Node: n.mux(), Group: vg, Thin: thin,
			Restart: func() conformance.ManagedNode {
				n.stop()
				n = m.boot(t, m)
				return n.mux()
			},
			Plug: func() string {
				plugged++
				name := fmt.Sprintf("sd%c", 'a'+plugged)
				m.plug(name)
				return provision.DiskPrefix + "naa." + name
			},
			Use: func(disk string) { m.disks.WriteDisk(strings.TrimPrefix(disk, "disk:naa."), 1080, "\x53\xef") },
			PutGroup: func() {
				m.AddGroup(vg.Name, 100)
				eventually(t, func() bool {
					pools, err := n.Report(t.Context())
					return err == nil && len(pools) == 1
				}, "the group is not noticed")
			},
			Fill: func(data, metadata int) {
				m.fill(data, metadata)
				mustReport(t, n)
			},
		}
	})
}

// fill fills the data and the metadata of the thin pool to these percentages.
func (m *bare) fill(data, metadata int) {
	m.Edit(func(groups map[string]*lvmtest.Group) string {
		g := groups[vg.Name]
		pool := g.Volumes["pool"]
		pool.Thin.Filled = metadata
		g.Volumes["theirs"] = &lvmtest.Volume{Extents: 1000, Pool: "pool", Data: pool.Extents * unit * int64(data) / 100}
		return ""
	})
}

// mux is the machine's node.
func (n managed) mux() *provision.Mux {
	return provision.NewMux(
		provision.Member{Types: []string{provision.LVM, provision.LVMThin}, Provisioner: n.Provisioner},
		provision.Member{Types: []string{provision.Device}, Provisioner: n.disks},
	)
}
