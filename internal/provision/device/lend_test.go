package device_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/devicetest"
	"berth.dev/berth/internal/provision/device/gpt"
)

// lend asks for disks, and returns the nodes that were lent.
func lend(t *testing.T, n *node, identities ...string) (nodes []string, refused []error) {
	t.Helper()
	var names []string
	for _, identity := range identities {
		names = append(names, pool(identity).Name)
	}
	refused, err := n.Lend(t.Context(), names, func(lent []string) error {
		nodes = lent
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return nodes, refused
}

func TestEmptyDisksAreLent(t *testing.T) {
	n := start(t, disks())
	if nodes, refused := lend(t, n, "naa.b", "naa.a", "naa.b"); !slices.Equal(nodes, []string{"/dev/sda", "/dev/sdb"}) || len(refused) > 0 {
		t.Errorf("lent %v, refused %v", nodes, refused)
	}
}

func TestNoDiskWithAnythingOnItOrInItsWayIsLent(t *testing.T) {
	table := gpt.Geometry{Size: diskSize, Block: 512}
	for name, use := range map[string]func(*testing.T, *devicetest.Machine, *node){
		"an ext4 filesystem": func(_ *testing.T, m *devicetest.Machine, _ *node) { m.WriteDisk("sda", 1080, "\x53\xef") },
		"a physical volume":  func(_ *testing.T, m *devicetest.Machine, _ *node) { m.WriteDisk("sda", 512, "LABELONE") },
		"foreign bytes at the end": func(_ *testing.T, m *devicetest.Machine, _ *node) {
			m.WriteDisk("sda", diskSize-mib, strings.Repeat("x", int(mib)))
		},
		"a volume of Berth": func(t *testing.T, _ *devicetest.Machine, n *node) { n.create(t, id, pool("naa.a")) },
		"a partition table": func(_ *testing.T, m *devicetest.Machine, _ *node) {
			for _, w := range table.Writes(gpt.Partition{Type: gpt.GUID{1}, ID: gpt.GUID{2}, First: 2048, Last: 5000, Name: "theirs"}) {
				m.WriteDisk("sda", w.Offset, string(w.Data))
			}
		},
		"a device above the disk": func(_ *testing.T, m *devicetest.Machine, _ *node) {
			m.Edit("sda", func(d *device.Disk) { d.Holders = []string{"md0"} })
		},
		"a partition without a table": func(_ *testing.T, m *devicetest.Machine, _ *node) {
			m.Edit("sda", func(d *device.Disk) {
				d.Partitions = []device.Partition{{Name: "sda1", Number: 1, Start: mib, Length: mib}}
			})
		},
		"an opened disk": func(t *testing.T, m *devicetest.Machine, _ *node) {
			holder, err := m.Hold("sda")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { holder.Close() })
		},
		"a twin": func(_ *testing.T, m *devicetest.Machine, _ *node) {
			m.Plug(devicetest.Disk("sdz", "naa.a", diskSize), m.Medium("sda"))
		},
		"faults":         func(_ *testing.T, m *devicetest.Machine, _ *node) { m.Fail("sda", errors.New("input/output error")) },
		"a missing disk": func(_ *testing.T, m *devicetest.Machine, _ *node) { m.Pull("sda") },
	} {
		for moment, when := range map[string]func(m *devicetest.Machine, use func()){
			"before":             func(_ *devicetest.Machine, use func()) { use() },
			"at the last moment": func(m *devicetest.Machine, use func()) { m.BeforeHold(use) },
		} {
			if moment != "before" && (name == "a volume of Berth" || name == "an opened disk") {
				continue // a lock keeps the volume out, and the holder has to come first
			}
			t.Run(name+" "+moment, func(t *testing.T) {
				m := disks()
				n := newNode(t, m) // does not watch
				if p := n.report(t, pool("naa.a")); !free(p) {
					t.Fatalf("reported %+v", p)
				}
				when(m, func() { use(t, m, n); m.CrashAfter(0) })
				nodes, refused := lend(t, n, "naa.a", "naa.b")
				if !slices.Equal(nodes, []string{"/dev/sdb"}) || len(refused) != 1 {
					t.Errorf("lent %v, refused %v", nodes, refused)
				}
				if effects := m.Live(); effects != 0 {
					t.Errorf("there were %d tries to change a disk", effects)
				}
			})
		}
	}
}

func TestADiskThatIsLentBearsNoVolumeAndIsLookedAtAfterwards(t *testing.T) {
	m := disks()
	n := newNode(t, m) // does not watch
	made := make(chan error, 1)
	refused, err := n.Lend(t.Context(), []string{pool("naa.a").Name}, func([]string) error {
		go func() {
			_, err := n.Create(t.Context(), provision.CreateRequest{ID: id, Pool: pool("naa.a"), Size: 1})
			made <- err
		}()
		m.Medium("sda").Put([]byte("LABELONE"), 512) // and no event tells
		return nil
	})
	if err != nil || len(refused) > 0 {
		t.Fatal(refused, err)
	}
	if err := <-made; !errors.Is(err, provision.ErrNoSpace) {
		t.Errorf("creating a volume on a disk that was lent: %v", err)
	}
	if p := n.report(t, pool("naa.a")); !strings.Contains(p.Problem, "LVM") {
		t.Errorf("reported %+v", p)
	}
}

func TestWhyTheTakerFailedIsToldAndLendsTheDiskAgain(t *testing.T) {
	n := start(t, disks())
	failure := errors.New("vgcreate failed")
	if _, err := n.Lend(t.Context(), []string{pool("naa.a").Name}, func([]string) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	if nodes, refused := lend(t, n, "naa.a"); len(nodes) != 1 {
		t.Errorf("lent %v, refused %v", nodes, refused)
	}
}
