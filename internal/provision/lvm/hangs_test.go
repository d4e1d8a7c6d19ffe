package lvm_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// slow are devices whose disks can be made to hang by their paths.
type slow struct {
	*lvmtest.Host
	mu   sync.Mutex
	hung map[string]chan struct{}
}

func (s *slow) hang(device string) (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := make(chan struct{})
	s.hung = map[string]chan struct{}{device: held}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hung = nil
		close(held)
	})
}

func (s *slow) Sequence(device string) (uint64, error) {
	s.mu.Lock()
	held := s.hung[device]
	s.mu.Unlock()
	if held != nil {
		<-held
	}
	return s.Host.Sequence(device)
}

func TestAVolumeGroupThatHangsHoldsUpNoOther(t *testing.T) {
	conformance.RunHangs(t, func(t *testing.T) conformance.Two {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100, other.Name: 100})
		s := &slow{Host: host}
		return conformance.Two{
			Hangs: vg, Works: other,
			Start: func() (provision.Provisioner, func(context.Context) error) {
				p, err := lvm.New(lvm.Config{Runner: host, Devices: s, Mkfs: host.Mkfs})
				if err != nil {
					t.Fatal(err)
				}
				return p, p.Run
			},
			Hang: func(m conformance.Moment) func() {
				resume := s.hang("/dev/disk-" + vg.Name)
				if m != conformance.AtStart {
					return resume
				}
				held := make(chan struct{})
				host.Disturb(func(h *lvmtest.Host) {
					h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
						readsGroups := c.Operation != "vgs" && c.Operation != "lvmconfig"
						if readsGroups && !mentions(c, other.Name) {
							<-held
						}
						return do()
					}
				})
				return sync.OnceFunc(func() { resume(); close(held) })
			},
			Touch: func() { host.PutForeign(vg.Name, "theirs", unit) },
			Take:  func() { host.PutForeign(other.Name, "theirs", unit) },
		}
	})
}

func TestADeviceOfOthersThatHangsHidesNoChangeOfAVolumeGroup(t *testing.T) {
	const stranger = "/dev/nbd0"
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		s := &slow{Host: host}
		resume := s.hang(stranger)
		defer resume()
		p, stop := start(t, lvm.Config{Runner: host, Devices: s, Mkfs: host.Mkfs})
		<-p.Changed() // it watches
		if pool := poolOf(t, p, vg); pool.Foreign != 0 {
			t.Fatalf("reported %+v", pool)
		}
		for range 2 { // the second writer is not waited for either
			host.Edit(func(map[string]*lvmtest.Group) string { return stranger })
		}
		host.PutForeign(vg.Name, "theirs", unit)
		synctest.Wait()
		if pool := poolOf(t, p, vg); pool.Foreign != unit {
			t.Errorf("what others did goes unnoticed: %+v", pool)
		}
		stop() // the test hangs if that waits for the device
	})
}

func TestADeviceOfOthersThatBecameAPhysicalVolumeWhileItWasLookedAtIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		s := &slow{Host: host}
		p, _ := start(t, lvm.Config{Runner: host, Devices: s, Mkfs: host.Mkfs})
		<-p.Changed()
		poolOf(t, p, vg)
		device := "/dev/disk-" + other.Name
		resume := s.hang(device)
		host.Edit(func(map[string]*lvmtest.Group) string { return device })
		synctest.Wait()
		host.AddGroup(other.Name, 10)
		synctest.Wait()
		resume()
		synctest.Wait()
		if pool := poolOf(t, p, other); pool.Total != 10*unit {
			t.Errorf("reported %+v", pool)
		}
	})
}

func TestAChangeWhosePhysicalVolumeHangsAfterwardsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		s := &slow{Host: host}
		p, stop := start(t, lvm.Config{Runner: host, Devices: s, Mkfs: host.Mkfs})
		<-p.Changed()
		poolOf(t, p, vg)
		defer s.hang("/dev/disk-" + vg.Name)()
		for _, id := range []string{"pvc-1", "pvc-2"} {
			create(t, p, request(id, 1))
		}
		if pool := poolOf(t, p, vg); len(pool.Volumes) != 2 || pool.Free != 98*unit {
			t.Errorf("reported %+v", pool)
		}
		stop() // the test hangs if that waits for the disk
	})
}
