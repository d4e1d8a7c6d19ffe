//go:build platform

package lvm_test

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/kernel"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

func TestConformanceOnRealLVM(t *testing.T) {
	pool := lvmtest.RealGroup(t, "vg-berth", lvmtest.Disks(t, 1)[0])
	conformance.Run(t, func(t *testing.T) conformance.Harness { return lvmtest.RealConformance(t, pool) })
}

func TestNoVolumeShowsDataOfAnotherOnRealLVM(t *testing.T) {
	pool := lvmtest.RealGroup(t, "vg-berth", lvmtest.Disks(t, 1)[0])
	conformance.RunForgets(t, func(t *testing.T) conformance.Harness {
		h := lvmtest.RealConformance(t, pool)
		h.Wipe = ""
		return h
	})
}

func TestProcessesPerOperationOnRealLVM(t *testing.T) {
	lvmtest.RealBudget(t, lvmtest.RealGroup(t, "vg-berth", lvmtest.Disks(t, 1)[0]))
}

func TestChangesByOthersAreNoticedOnRealDisks(t *testing.T) {
	disks := lvmtest.Disks(t, 2)
	pool := lvmtest.RealGroup(t, "vg-berth", disks[0])
	c, _, _ := lvmtest.RealConfig(t)
	p, _ := start(t, c)
	reported := func(ok func([]provision.Pool) bool) func() bool {
		return func() bool {
			pools, err := p.Report(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return ok(pools)
		}
	}
	var size int64
	eventually(t, reported(func(pools []provision.Pool) bool {
		if len(pools) == 1 {
			size = pools[0].Total
		}
		return size > 0
	}), "the group is not reported")
	lvmtest.RealForeign(t, pool.Name, "theirs", 64<<20)
	eventually(t, reported(func(pools []provision.Pool) bool { return pools[0].Foreign == 64<<20 }), "a foreign volume was not noticed")
	lvmtest.LVM(t, "pvcreate", "--yes", "-ff", disks[1])
	lvmtest.LVM(t, "vgextend", pool.Name, disks[1])
	eventually(t, reported(func(pools []provision.Pool) bool { return pools[0].Total > size }), "a disk more was not noticed")
	lvmtest.LVM(t, "vgreduce", pool.Name, disks[1])
	eventually(t, reported(func(pools []provision.Pool) bool { return pools[0].Total == size }), "a disk less was not noticed")
	lvmtest.LVM(t, "vgcreate", "vg-second", disks[1])
	eventually(t, reported(func(pools []provision.Pool) bool { return len(pools) == 2 }), "a new group was not noticed")
	lvmtest.LVM(t, "vgremove", "vg-second")
	eventually(t, reported(func(pools []provision.Pool) bool { return len(pools) == 1 }), "a group that went was not noticed")
	lvmtest.LVM(t, "pvremove", disks[1])
}

// The agent's image brings the programs of LVM, and takes the configuration from the machine.
func TestAMachineWithoutAConfigurationFileOfLVMIsServedByRealLVM(t *testing.T) {
	t.Setenv("LVM_SYSTEM_DIR", t.TempDir())
	pool := lvmtest.RealGroup(t, "vg-berth", lvmtest.Disks(t, 1)[0])
	c, _, _ := lvmtest.RealConfig(t)
	p, _ := start(t, c)
	if _, err := p.Create(t.Context(), provision.CreateRequest{ID: "pvc-1", Pool: pool, Size: 4 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Error(err)
	}
}

func TestVolumesAreActivatedAfterARebootOnRealLVM(t *testing.T) {
	pool := lvmtest.RealGroup(t, "vg-berth", lvmtest.Disks(t, 1)[0])
	c, _, _ := lvmtest.RealConfig(t)
	p, stop := start(t, c)
	v, err := p.Create(t.Context(), provision.CreateRequest{ID: "pvc-1", Pool: pool, Size: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	lvmtest.LVM(t, "vgchange", "--activate", "n", pool.Name)
	if (kernel.Devices{}).Leads(v.Content.Source, v.Content.Identity) == nil {
		t.Fatal("the volume is still active")
	}
	p, _ = start(t, c)
	got, err := p.Get(t.Context(), "pvc-1")
	if err != nil || got != v || (kernel.Devices{}).Leads(v.Content.Source, v.Content.Identity) != nil {
		t.Errorf("after the reboot: %+v, %v; want %+v", got, err, v)
	}
}

// While a process holds a device to write to it, no other process may mount a filesystem on it.
func TestAHeldDeviceIsRefusedToOtherCallers(t *testing.T) {
	pool := lvmtest.RealGroup(t, "vg-berth", lvmtest.Disks(t, 1)[0])
	lvmtest.LVM(t, "lvcreate", "--yes", "--size", "4m", "--name", "held", pool.Name)
	v, devices := lvmtest.RealVolume(t, pool.Name, "held"), kernel.Devices{}
	h, err := devices.Hold(v.Content.Source, v.Content.Identity)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := devices.Hold(v.Content.Source, v.Content.Identity); !errors.Is(err, lvm.ErrBusy) {
		t.Errorf("it is held a second time: %v, %v", other, err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if other, err := devices.Hold(v.Content.Source, "dm:vg--berth-held LVM-another"); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("it is held as another device: %v, %v", other, err)
	}
}

func TestGroupLockedByAnotherProcessHoldsUpNoOtherOnRealLVM(t *testing.T) {
	disks := lvmtest.Disks(t, 2)
	a, b := lvmtest.RealGroup(t, "vg-a", disks[0]), lvmtest.RealGroup(t, "vg-b", disks[1])
	c, _, _ := lvmtest.RealConfig(t)
	p, _ := start(t, c)
	lock, err := os.OpenFile("/run/lock/lvm/V_"+a.Name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	pools, err := p.Report(t.Context())
	if err != nil || len(pools) != 2 || pools[0].Problem == "" || pools[1].Problem != "" {
		t.Errorf("reported %+v, %v; want trouble with %s alone", pools, err, a.Name)
	}
	if _, err := p.Create(t.Context(), provision.CreateRequest{ID: "pvc-b", Pool: b, Size: 4 << 20}); err != nil {
		t.Errorf("creating in the free group: %v", err)
	}
	if _, err := p.Create(t.Context(), provision.CreateRequest{ID: "pvc-a", Pool: a, Size: 4 << 20}); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("creating in the locked group: %v", err)
	}
	lock.Close()
	eventually(t, func() bool {
		_, err := p.Create(t.Context(), provision.CreateRequest{ID: "pvc-a", Pool: a, Size: 4 << 20})
		return err == nil
	}, "the group did not come back")
}
