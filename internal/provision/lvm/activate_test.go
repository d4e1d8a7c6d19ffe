package lvm_test

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// rebooted returns a machine whose volumes exist and are inactive.
func rebooted(volumes ...string) *lvmtest.Host {
	host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
	host.Edit(func(groups map[string]*lvmtest.Group) string {
		for _, id := range volumes {
			groups[vg.Name].Volumes[id] = &lvmtest.Volume{Extents: 1, Tags: []string{"berth.dev/volume=" + id}}
		}
		groups[vg.Name].Volumes["theirs"] = &lvmtest.Volume{Extents: 1}
		return ""
	})
	return host
}

func TestAfterARebootAllVolumesAreActivatedOnceAndForeignOnesNot(t *testing.T) {
	host := rebooted("pvc-1", "pvc-2")
	counter, c := counted(host)
	p, _ := start(t, c)
	if _, err := p.Report(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	for _, id := range []string{"pvc-1", "pvc-2"} {
		if v, err := p.Get(t.Context(), id); err != nil || v.Problem != "" || !host.Exists(v.Content.Source) {
			t.Errorf("%s: %+v, %v", id, v, err)
		}
	}
	if host.Exists("/dev/" + vg.Name + "/theirs") {
		t.Error("a foreign volume was activated")
	}
	if got := counter.Counts()["lvchange"]; got != 1 {
		t.Errorf("%d processes activated the volumes, want 1", got)
	}
}

func TestVolumeWhoseDeviceIsNotThereIsActivatedWhenAskedFor(t *testing.T) {
	host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
	_, c := counted(host)
	p, _ := start(t, c)
	v, err := p.Create(t.Context(), request("pvc-1", 1))
	if err != nil {
		t.Fatal(err)
	}
	deactivate := func() { host.On(v.Content.Source, func(v *lvmtest.Volume) { v.Active = false }) }
	deactivate()
	if v, err := p.Get(t.Context(), "pvc-1"); err != nil || v.Problem != "" || !host.Exists(v.Content.Source) {
		t.Errorf("got %+v, %v", v, err)
	}
	deactivate()
	host.Around = only("lvchange", func(c run.Command, _ func() ([]byte, error)) ([]byte, error) { return nil, exit5(c) })
	if v, err := p.Get(t.Context(), "pvc-1"); err != nil || v.Problem == "" {
		t.Errorf("a volume that cannot be activated: %+v, %v; want a problem", v, err)
	}
}

func TestANodeThatTheMachineLeftIsMadeAnew(t *testing.T) {
	for name, tc := range map[string]struct {
		left      func(host *lvmtest.Host, own, other string)
		processes map[string]int
	}{
		"LVM deactivated the volume":                                           {func(h *lvmtest.Host, own, _ string) { h.Deactivate(own) }, map[string]int{"lvchange": 1}},
		"LVM deactivated the volume, and another device took the number":       {func(h *lvmtest.Host, own, other string) { h.Deactivate(own); h.Mislead(own, other) }, map[string]int{"lvchange": 1}},
		"LVM activated the volume again, and the node leads to another device": {func(h *lvmtest.Host, own, other string) { h.Mislead(own, other) }, map[string]int{"lvchange": 1, "vgmknodes": 1}},
		"LVM activated the volume again, and the node leads to no device":      {func(h *lvmtest.Host, own, _ string) { h.Mislead(own, "") }, map[string]int{"lvchange": 1, "vgmknodes": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
			counter, c := counted(host)
			p, _ := start(t, c)
			v, other := create(t, p, request("pvc-1", 1)), create(t, p, request("pvc-2", 1))
			tc.left(host, v.Content.Source, other.Content.Source)
			counter.Take()
			for range 2 {
				if got, err := p.Get(t.Context(), v.ID); err != nil || got != v || host.Leads(v.Content.Source, v.Content.Identity) != nil {
					t.Errorf("got %+v, %v, want %+v, and its node: %v", got, err, v, host.Leads(v.Content.Source, v.Content.Identity))
				}
			}
			if got := counter.Take(); !maps.Equal(got, tc.processes) {
				t.Errorf("it took the processes %v, want %v", got, tc.processes)
			}
		})
	}
}

func TestAVolumeOfWhichTheKernelDidNotTellIsKnownByTheNextReport(t *testing.T) {
	for name, devices := range map[string]func(*lvmtest.Host) lvm.Devices{
		"the kernel does not answer":    func(h *lvmtest.Host) lvm.Devices { return mute{h} },
		"the device is another group's": func(h *lvmtest.Host) lvm.Devices { return stranger{h} },
	} {
		t.Run(name, func(t *testing.T) {
			host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
			_, c := counted(host)
			c.Devices = devices(host)
			p, _ := start(t, c)
			v := create(t, p, request("pvc-1", 1))
			if v.Content.Identity != "" {
				t.Errorf("it is known as %q", v.Content.Identity)
			}
			v, err := p.Get(t.Context(), "pvc-1")
			if err != nil || v.Problem != "" || host.Leads(v.Content.Source, v.Content.Identity) != nil {
				t.Errorf("got %+v, %v", v, err)
			}
		})
	}
}

// stranger is a machine on which another group's device took the name of a volume's.
type stranger struct{ *lvmtest.Host }

func (stranger) UUID(string) (string, error) { return "LVM-" + strings.Repeat("x", 64), nil }

// mute is a machine whose kernel does not tell the UUID of a device.
type mute struct{ *lvmtest.Host }

func (mute) UUID(string) (string, error) { return "", errors.New("no answer") }

func TestVolumeRenamedByHandIsNoLongerBerths(t *testing.T) {
	host := rebooted("pvc-1")
	host.Edit(func(groups map[string]*lvmtest.Group) string {
		g := groups[vg.Name]
		g.Volumes["pvc-2"] = g.Volumes["pvc-1"]
		delete(g.Volumes, "pvc-1")
		return ""
	})
	_, c := counted(host)
	p, _ := start(t, c)
	pools, err := p.Report(t.Context())
	if err != nil || len(pools[0].Volumes) != 0 || pools[0].Foreign != 2*unit {
		t.Errorf("reported %+v, %v", pools, err)
	}
	if err := p.Delete(t.Context(), "pvc-2"); err == nil || errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("deleting it: %v, want a refusal", err)
	}
}

func TestAPoolWhosePartsAFailedActivationLeftBehindIsActivated(t *testing.T) {
	for name, needed := range map[string]func(*testing.T, *lvm.Provisioner) error{
		"a volume of the pool needs the pool": func(t *testing.T, p *lvm.Provisioner) error {
			v, err := p.Get(t.Context(), "pvc-1")
			return cmp.Or(err, problem(v.Problem))
		},
		"a new volume needs the pool": func(t *testing.T, p *lvm.Provisioner) error {
			_, err := p.Create(t.Context(), promised("pvc-2", 1))
			return err
		},
	} {
		for _, part := range []string{"_tdata", "_tmeta"} {
			t.Run(name+" despite "+part, inBubble(func(t *testing.T) {
				host := thinHost()
				p := over(t, host)
				create(t, p, promised("pvc-1", 10))
				deactivate(host)
				onPool(host, func(pool *lvmtest.ThinPool) { pool.Parts = map[string]bool{part: false} })
				if err := needed(t, p); err != nil {
					t.Fatal(err)
				}
				if !host.Exists("/dev/" + thin.Name) {
					t.Error("the pool is not active")
				}
			}))
		}
	}
}

func TestPartsOfAPoolThatCannotBeDeactivatedAreItsProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := thinHost()
		p := over(t, host)
		create(t, p, promised("pvc-1", 10))
		deactivate(host)
		onPool(host, func(pool *lvmtest.ThinPool) { pool.Parts = map[string]bool{"_tmeta": false} })
		disturb(host, only("lvchange", func(c run.Command, _ func() ([]byte, error)) ([]byte, error) { return nil, exit5(c) }))
		if v, err := p.Get(t.Context(), "pvc-1"); err != nil || !strings.Contains(v.Problem, "its parts are active without it") {
			t.Errorf("got %+v, %v", v, err)
		}
	})
}

func problem(p string) error {
	if p == "" {
		return nil
	}
	return errors.New(p)
}

// refusing returns a machine whose thin pool cannot be activated as long as fails returns true,
// the times at which LVM was told to activate the pool, and a provisioner that knows it.
func refusing(t *testing.T, fails func(host *lvmtest.Host) bool) (host *lvmtest.Host, tried *[]time.Time, p *lvm.Provisioner) {
	t.Helper()
	host, tried = thinHost(), &[]time.Time{}
	host.On("/dev/"+thin.Name, func(v *lvmtest.Volume) { v.Active = false })
	disturb(host, only("lvchange", func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
		if slices.Contains(c.Args, "n") {
			return do()
		}
		*tried = append(*tried, time.Now())
		if fails(host) {
			return nil, exit5(c)
		}
		return do()
	}))
	_, c := counted(host)
	p, _ = start(t, c)
	if _, err := p.Create(t.Context(), promised("pvc-1", 1)); !errors.Is(err, provision.ErrUnavailable) {
		t.Fatalf("creating in a pool that cannot be activated: %v", err)
	}
	return host, tried, p
}

// One failure must not keep a pool from its users for ever.
func TestAnActivationThatFailsOnceAndLeavesPartsIsMadeGoodWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		_, _, p := refusing(t, func(host *lvmtest.Host) bool {
			if first {
				first = false
				onPool(host, func(pool *lvmtest.ThinPool) { pool.Parts = map[string]bool{"_tdata": false, "_tmeta": false} })
				return true
			}
			return false
		})
		<-time.After(time.Minute)
		if pool := poolOf(t, p, thin); pool.Problem != "" {
			t.Errorf("the problem is %q", pool.Problem)
		}
		create(t, p, promised("pvc-1", 1))
	})
}

func TestAPoolThatCannotBeActivatedIsTriedEverMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, tried, p := refusing(t, func(*lvmtest.Host) bool { return true })
		<-time.After(time.Hour)
		p.Wait()
		at := *tried
		if n := len(at); n < 10 || n > 20 {
			t.Fatalf("it was tried %d times in an hour", n)
		}
		if soon, late := at[1].Sub(at[0]), at[len(at)-1].Sub(at[len(at)-2]); soon > time.Minute || late < 4*time.Minute || late > 6*time.Minute {
			t.Errorf("it was tried again after %v at first and after %v in the end", soon, late)
		}
	})
}

// LVM activates a part alone only read-only, for an administrator who looks at it.
func TestAPartThatAnAdministratorLooksAtIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := thinHost()
		p := over(t, host)
		create(t, p, promised("pvc-1", 10))
		deactivate(host)
		onPool(host, func(pool *lvmtest.ThinPool) { pool.Parts = map[string]bool{"_tmeta": true} })
		if v, err := p.Get(t.Context(), "pvc-1"); err != nil || !strings.Contains(v.Problem, "prohibited while logical volume vg-a/pool_tmeta is active") {
			t.Errorf("got %+v, %v", v, err)
		}
		onPool(host, func(pool *lvmtest.ThinPool) {
			if len(pool.Parts) != 1 {
				t.Error("the part was deactivated")
			}
			pool.Parts = nil
		})
		eventually(t, func() bool { return poolOf(t, p, thin).Problem == "" }, "the pool is not activated afterwards")
	})
}
