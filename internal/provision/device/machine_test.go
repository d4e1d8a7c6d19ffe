package device_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/devicetest"
)

func TestADiskIsReportedWithItsMediaSizeAndPaths(t *testing.T) {
	ssd := devicetest.Disk("nvme0n1", "eui.1", diskSize)
	ssd.Links = []string{"/dev/disk/by-id/nvme-one"}
	hdd := devicetest.Disk("sda", "t10.ATA  disk", diskSize)
	hdd.Rotational = true
	n := start(t, devicetest.NewMachine(ssd, hdd))
	want := map[string]provision.Pool{
		"eui.1":        {Media: provision.MediaSSD, Paths: []string{"/dev/nvme0n1", "/dev/disk/by-id/nvme-one"}},
		"t10.ATA_disk": {Media: provision.MediaHDD, Paths: []string{"/dev/sda"}},
	}
	for identity, want := range want {
		p := n.report(t, pool(identity))
		if p == nil || p.Total != room || p.Unit != room || p.Free != room || p.Media != want.Media || !slices.Equal(p.Paths, want.Paths) || p.Problem != "" {
			t.Errorf("%s is reported as %+v", identity, p)
		}
	}
	for identity, device := range map[string]string{"eui.1": "/dev/nvme0n1p1", "t10.ATA_disk": "/dev/sda1"} {
		v := n.create(t, "pvc-"+identity[:1], pool(identity))
		if p := n.report(t, pool(identity)); v.Content.Source != device || !slices.Equal(p.Paths, want[identity].Paths) {
			t.Errorf("%s has volume %+v and is reported as %+v", identity, v, p)
		}
	}
}

func TestDisksThatCannotBeToldApartAreNotHandedOut(t *testing.T) {
	m := devicetest.NewMachine(
		devicetest.Disk("sda", "same", diskSize), devicetest.Disk("sdb", "same", diskSize),
		devicetest.Disk("sdc", "", diskSize), devicetest.Disk("sdd", "small", 2*mib),
	)
	n := start(t, m)
	pools, err := n.Report(t.Context())
	if err != nil || len(pools) != 1 || pools[0].Free != 0 || !strings.Contains(pools[0].Problem, "sda and sdb") {
		t.Fatalf("reported %+v, %v", pools, err)
	}
	if _, err := n.Create(t.Context(), provision.CreateRequest{ID: id, Pool: pool("same"), Size: 1}); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("creating: %v, want ErrUnavailable", err)
	}
	m.Pull("sdb")
	n.await(t, pool("same"), "the only one left", free)
}

// A second way to the disk of a volume turns up.
func TestAVolumeWhoseDiskCannotBeToldApartIsNotTouched(t *testing.T) {
	m := disks()
	n := start(t, m)
	n.create(t, id, pool("naa.a"))
	m.Plug(devicetest.Disk("sdz", "naa.a", diskSize), m.Medium("sda"))
	n.await(t, pool("naa.a"), "the problem", func(p *provision.Pool) bool {
		return strings.Contains(p.Problem, "sda and sdz") && len(p.Volumes) == 1 && p.Volumes[0].Problem != ""
	})
	m.CrashAfter(0)
	if err := n.Delete(t.Context(), id); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("deleting: %v, want ErrUnavailable", err)
	}
	if effects := m.Live(); effects != 0 {
		t.Errorf("there were %d tries to change a disk", effects)
	}
}

func TestAVolumeOnTwoDisksIsTouchedOnNeither(t *testing.T) {
	m := disks()
	n := start(t, m)
	n.create(t, id, pool("naa.a"))
	m.Pull("nvme0n1")
	m.Plug(devicetest.Disk("nvme0n1", "eui.c", diskSize), m.Medium("sda").Copy())
	n.await(t, pool("eui.c"), "the copy", func(p *provision.Pool) bool { return p != nil && len(p.Volumes) == 1 })
	m.CrashAfter(0)
	if err := n.Delete(t.Context(), id); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("deleting: %v, want ErrConflict", err)
	}
	if _, err := n.Get(t.Context(), id); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("getting: %v, want ErrConflict", err)
	}
	if _, err := n.Create(t.Context(), ask(id, "naa.a")); !errors.Is(err, provision.ErrConflict) || !strings.Contains(err.Error(), "one is a copy") {
		t.Errorf("creating: %v, want ErrConflict and why", err)
	}
	if effects := m.Live(); effects != 0 {
		t.Errorf("there were %d tries to change a disk", effects)
	}
}

// A process that has just begun has not read all disks: a copy may be on one that is slow.
func TestAVolumeIsNotTouchedBeforeEveryDiskWasRead(t *testing.T) {
	for name, slow := range map[string]string{"the disk of the volume is slow": "sda", "the disk of the copy is slow": "nvme0n1"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := disks()
				newNode(t, m).create(t, id, pool("naa.a"))
				m.Pull("nvme0n1")
				m.Plug(devicetest.Disk("nvme0n1", "eui.c", diskSize), m.Medium("sda").Copy())
				resume := m.Hang(slow)
				n := start(t, m)
				synctest.Wait()
				m.CrashAfter(0)
				deleted := make(chan error, 1)
				go func() { deleted <- n.Delete(t.Context(), id) }()
				synctest.Wait()
				resume()
				if err := <-deleted; !errors.Is(err, provision.ErrConflict) {
					t.Errorf("deleting: %v, want ErrConflict", err)
				}
				if effects := m.Live(); effects != 0 {
					t.Errorf("there were %d tries to change a disk", effects)
				}
			})
		})
	}
}

func TestAVolumeWhoseDiskIsGoneIsNotTakenForDeleted(t *testing.T) {
	m := disks()
	n := start(t, m)
	n.create(t, id, pool("naa.a"))
	medium := m.Pull("sda")
	n.await(t, pool("naa.a"), "the problem", func(p *provision.Pool) bool {
		return p != nil && strings.Contains(p.Problem, "gone") && len(p.Volumes) == 1 && p.Volumes[0].Problem != ""
	})
	if err := n.Delete(t.Context(), id); !errors.Is(err, provision.ErrPoolMissing) {
		t.Errorf("deleting: %v, want ErrPoolMissing", err)
	}
	if v, err := n.Get(t.Context(), id); err != nil || v.Problem == "" {
		t.Errorf("got %+v, %v, want a problem", v, err)
	}
	if _, err := n.Create(t.Context(), provision.CreateRequest{ID: "pvc-other", Pool: pool("naa.a"), Size: 1}); !errors.Is(err, provision.ErrPoolMissing) {
		t.Errorf("creating: %v, want ErrPoolMissing", err)
	}
	m.Plug(devicetest.Disk("sdq", "naa.a", diskSize), medium) // the kernel names it anew
	n.await(t, pool("naa.a"), "the disk", func(p *provision.Pool) bool { return p.Problem == "" && p.Volumes[0].Problem == "" })
	if v, err := n.Get(t.Context(), id); err != nil || v.Content.Source != "/dev/sdq1" || v.Problem != "" {
		t.Errorf("got %+v, %v", v, err)
	}
	n.delete(t, id)
}

// Two disks swap their names between two requests.
func TestNamesAreNotTrusted(t *testing.T) {
	m := devicetest.NewMachine(devicetest.Disk("sda", "naa.a", diskSize), devicetest.Disk("sdb", "naa.b", diskSize))
	n := newNode(t, m) // does not watch
	n.create(t, id, pool("naa.a"))
	m.WritePartition(n.create(t, "pvc-other", pool("naa.b")).Content.Source, secret)
	a, b := m.Pull("sda"), m.Pull("sdb")
	m.Plug(devicetest.Disk("sda", "naa.b", diskSize), b)
	m.Plug(devicetest.Disk("sdb", "naa.a", diskSize), a)
	v, err := n.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: provision.Ext4})
	if err != nil || v.Content.Source != "/dev/sdb1" {
		t.Errorf("formatted %+v, %v", v, err)
	}
	if got := m.ReadPartition("/dev/sda1", len(secret)); got != secret {
		t.Errorf("the other volume begins with %q", got)
	}
}

// Time passes only while nothing else happens, so that only the disk that hangs is ever
// too late.
func TestAHangingDiskHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := disks()
		resume := m.Hang("sdb")
		n := start(t, m)
		n.await(t, pool("naa.a"), "the disk that answers", free)
		if p := n.report(t, pool("naa.b")); p != nil {
			t.Errorf("a disk of which nothing is known is reported: %+v", p)
		}
		if _, err := n.Report(t.Context()); !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "sdb") {
			t.Errorf("the report does not name it: %v", err)
		}
		if err := n.Healthy(); !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "sdb") {
			t.Errorf("health: %v", err)
		}
		n.create(t, id, pool("naa.a"))
		resume()
		n.await(t, pool("naa.b"), "the disk that answers again", free)
		if err := n.Healthy(); err != nil {
			t.Errorf("health: %v", err)
		}
	})
}

func TestADiskThatFailsIsClosedAndItsVolumeShown(t *testing.T) {
	m := disks()
	n := start(t, m)
	n.create(t, id, pool("naa.a"))
	m.Fail("sda", errors.New("input/output error"))
	n.await(t, pool("naa.a"), "the problem", func(p *provision.Pool) bool {
		return strings.Contains(p.Problem, "input/output error") && len(p.Volumes) == 1 && p.Volumes[0].Problem != ""
	})
	if err := n.Delete(t.Context(), id); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("deleting: %v, want ErrUnavailable", err)
	}
	m.Fail("sda", nil)
	n.await(t, pool("naa.a"), "the disk", func(p *provision.Pool) bool { return p.Problem == "" })
	n.delete(t, id)
}

func TestADiskThatIsNotWipedStaysClosed(t *testing.T) {
	for name, tc := range map[string]struct {
		broken, mend func(*devicetest.Machine)
	}{
		"the disk lies about a wipe": {
			func(m *devicetest.Machine) { m.Lie("sda", true) }, func(m *devicetest.Machine) { m.Lie("sda", false) },
		},
		"the process ends in the middle": {
			func(m *devicetest.Machine) { m.CrashAfter(8) }, func(m *devicetest.Machine) { m.Live() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := disks()
				n := newNode(t, m)
				var err error
				n.Provisioner, err = device.New(device.Config{Disks: m, Mkfs: n.mkfs.make, WipeStep: mib})
				if err != nil {
					t.Fatal(err)
				}
				conformance.Watching(t, n.Run)
				v := n.create(t, id, pool("naa.a"))
				m.WritePartition(v.Content.Source, secret)
				tc.broken(m)
				n.delete(t, id)
				failed := func(p *provision.Pool) bool { return strings.Contains(p.Problem, "failed") && p.Free == 0 }
				n.await(t, pool("naa.a"), "the problem", failed)
				if _, err := n.Create(t.Context(), provision.CreateRequest{ID: "pvc-other", Pool: pool("naa.a"), Size: 1}); !errors.Is(err, provision.ErrNoSpace) {
					t.Errorf("creating: %v, want ErrNoSpace", err)
				}
				tc.mend(m)
				n.await(t, pool("naa.a"), "a free disk", free)
				if m.Medium("sda").Used() {
					t.Error("the disk is free and not empty")
				}
			})
		})
	}
}

func TestAFailedFormatLeavesTheVolumeBlank(t *testing.T) {
	m := disks()
	n := start(t, m)
	n.create(t, id, pool("naa.a"))
	n.mkfs.fault = errors.New("mkfs failed")
	if _, err := n.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: provision.Ext4}); !errors.Is(err, n.mkfs.fault) {
		t.Errorf("formatting: %v", err)
	}
	if v, err := n.Get(t.Context(), id); err != nil || v.Filesystem != "" {
		t.Errorf("got %+v, %v, want it blank", v, err)
	}
	n.mkfs.fault = nil
	if v, err := n.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: provision.Ext4}); err != nil || v.Filesystem != provision.Ext4 {
		t.Errorf("formatted %+v, %v", v, err)
	}
}

func TestAProvisionerNeedsDisksAndMkfs(t *testing.T) {
	if _, err := device.New(device.Config{}); err == nil {
		t.Error("it was made without")
	}
}
