package zfs_test

import (
	"fmt"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

func TestConformanceOfManagedZpoolsOnPlayedZFS(t *testing.T) {
	conformance.RunGroupManager(t, func(t *testing.T) conformance.Managed {
		m := bareMachine()
		n := m.boot(t)
		plugged := 0
		return conformance.Managed{
			Node: n.mux(), Group: wished,
			Restart: func() conformance.ManagedNode {
				n.stop()
				n = m.boot(t)
				return n.mux()
			},
			Plug: func() string {
				plugged++
				name := fmt.Sprintf("sd%c", 'a'+plugged)
				m.plug(name)
				return provision.DiskPrefix + "naa." + name
			},
			Use:      func(disk string) { m.disks.WriteDisk(strings.TrimPrefix(disk, "disk:naa."), 1080, "\x53\xef") },
			PutGroup: func() { m.putZpool("") },
		}
	})
}

func TestAProcessMayEndAtAnyEffectOfManagingZpools(t *testing.T) {
	const effects = 2 * 4 // two vdevs, an import and one vdev more
	for at := 1; at <= effects+1; at++ {
		m := bareMachine("sda", "sdb", "sdc", "sdd")
		c := &crash{halve: m.Halve, at: at}
		m.Around = func(cmd run.Command, do func() ([]byte, error)) ([]byte, error) {
			if asks := cmd.Program == "zpool" && (cmd.Args[0] == "get" || cmd.Args[0] == "import" && cmd.Args[1] == "-d"); asks && !c.dead {
				return do()
			}
			return c.around(cmd, do)
		}
		n := m.boot(t)
		reach := func(what string, want zfstest.Made) {
			t.Helper()
			for range 6 {
				o, err := n.ensure(t, mirror)
				switch {
				case c.dead:
					n.stop()
					c.dead = false
					n = m.boot(t)
				case err != nil:
					t.Fatalf("effect %d: %s: %v", at, what, err)
				case o.Reason == provision.PoolAsAsked:
					if got := fmt.Sprint(m.zpool()); got != fmt.Sprint(want) {
						t.Fatalf("effect %d: %s: the zpool is %s", at, what, got)
					}
					return
				}
			}
			t.Fatalf("effect %d: %s does not come to an end", at, what)
		}
		want := zfstest.Made{Comment: "berth.dev:Mirror:2:12", Ashift: "12", Cachefile: "none", Vdevs: [][]string{
			{"mirror", "/dev/sda", "/dev/sdb"}, {"mirror", "/dev/sdc", "/dev/sdd"},
		}}
		reach("making", want)
		n.stop()
		m.Reboot()
		m.plug("sde")
		m.plug("sdf")
		n = m.boot(t)
		want.Vdevs = append(want.Vdevs, []string{"mirror", "/dev/sde", "/dev/sdf"})
		reach("importing and growing", want)
		n.stop()
		if ended := c.seen >= at; ended != (at <= effects) {
			t.Errorf("effect %d came: %v; the story has %d", at, ended, effects)
		}
	}
}

// A machine may end in the middle of the command. A disk that was labelled is not empty any
// more, and nothing tells whose it is.
func TestADiskThatAnEndingMachineLeftLabelledIsNotTaken(t *testing.T) {
	m := bareMachine("sda", "sdb", "sdc")
	ended := false
	m.Label = func(node string) (int64, error) {
		if ended = ended || node == "/dev/sdb"; ended {
			return 0, errCrash
		}
		return m.label(node)
	}
	n := m.boot(t)
	if _, err := n.ensure(t, mirror); err == nil {
		t.Fatal("no error")
	}
	n.stop()
	m.Label = m.label
	n = m.boot(t)
	n.mustEnsure(t, mirror, provision.PoolMade)
	if got := fmt.Sprint(m.zpool().Vdevs); got != "[[mirror /dev/sdb /dev/sdc]]" {
		t.Errorf("the zpool is made of %s", got)
	}
}
