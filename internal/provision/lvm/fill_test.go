package lvm_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

func TestAPoolThatDoesNotWorkIsReportedAndTakesNothingNew(t *testing.T) {
	for name, tc := range map[string]struct {
		damage  func(*lvmtest.ThinPool)
		problem string
		want    error
	}{
		"the metadata is read-only":                    {func(p *lvmtest.ThinPool) { p.Mode = "ro" }, "cannot be written", provision.ErrUnavailable},
		"the pool is out of data":                      {func(p *lvmtest.ThinPool) { p.Mode = "out_of_data_space" }, "lvextend --size +SIZE vg-a/pool", provision.ErrNoSpace},
		"the pool has failed":                          {func(p *lvmtest.ThinPool) { p.Mode = "Fail" }, "lvconvert --repair vg-a/pool", provision.ErrUnavailable},
		"the pool needs a check":                       {func(p *lvmtest.ThinPool) { p.NeedsCheck = true }, "needs a check", provision.ErrUnavailable},
		"the pool has a mode that Berth does not know": {func(p *lvmtest.ThinPool) { p.Mode = "half_open" }, "not understood", provision.ErrUnavailable},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			host := thinHost()
			_, c := counted(host)
			p, _ := start(t, c)
			v := create(t, p, promised("pvc-1", 10))
			onPool(host, tc.damage)
			eventually(t, func() bool { return strings.Contains(poolOf(t, p, thin).Problem, tc.problem) }, "the problem is not reported")
			if other := poolOf(t, p, vg); other.Problem != "" {
				t.Errorf("the group has a problem with it: %s", other.Problem)
			}
			if _, err := p.Create(t.Context(), promised("pvc-2", 1)); !errors.Is(err, tc.want) {
				t.Errorf("creating: %v, want %v", err, tc.want)
			}
			if _, err := p.Expand(t.Context(), provision.ExpandRequest{ID: "pvc-1", Size: 11 * unit}); !errors.Is(err, tc.want) {
				t.Errorf("growing: %v, want %v", err, tc.want)
			}
			if again, err := p.Create(t.Context(), promised("pvc-1", 10)); err != nil || again != v {
				t.Errorf("a volume that is there: %+v, %v", again, err)
			}
			if _, err := p.Format(t.Context(), provision.FormatRequest{ID: "pvc-1", Filesystem: "ext4"}); err != nil {
				t.Errorf("using a volume that is there: %v", err)
			}
			onPool(host, func(p *lvmtest.ThinPool) { p.Mode, p.NeedsCheck = "", false })
			eventually(t, func() bool { return poolOf(t, p, thin).Problem == "" }, "the way back is not reported")
			create(t, p, promised("pvc-2", 1))
		}))
	}
}

// deactivate removes a thin pool and its volume from the kernel. The group does not change.
func deactivate(host *lvmtest.Host) {
	for _, name := range []string{"/dev/" + thin.Name, "/dev/vg-a/pvc-1"} {
		host.On(name, func(v *lvmtest.Volume) { v.Active = false })
	}
}

func TestAPoolThatCannotBeActivatedForAVolumeSaysSo(t *testing.T) {
	host := thinHost()
	p := over(t, host)
	create(t, p, promised("pvc-1", 10))
	deactivate(host)
	disturb(host, only("lvchange", func(c run.Command, _ func() ([]byte, error)) ([]byte, error) { return nil, exit5(c) }))
	if v, err := p.Get(t.Context(), "pvc-1"); err != nil || !strings.Contains(v.Problem, "something strange") {
		t.Errorf("got %+v, %v", v, err)
	}
	if problem := poolOf(t, p, thin).Problem; !strings.Contains(problem, "something strange") || !strings.Contains(problem, "lvconvert --repair vg-a/pool") {
		t.Errorf("the problem is %q", problem)
	}
	disturb(host, nil)
	if v, err := p.Get(t.Context(), "pvc-1"); err != nil || v.Problem != "" {
		t.Errorf("got %+v, %v", v, err)
	}
	if problem := poolOf(t, p, thin).Problem; problem != "" {
		t.Errorf("the problem is %q", problem)
	}
}

func TestAPoolThatCannotBeActivatedKeepsItsProblemUntilItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := thinHost()
		host.On("/dev/"+thin.Name, func(v *lvmtest.Volume) { v.Active = false })
		var tried, heals atomic.Int64
		disturb(host, only("lvchange", func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
			if tried.Add(1); heals.Load() > 0 {
				return do()
			}
			return nil, exit5(c)
		}))
		_, c := counted(host)
		p, _ := start(t, c)
		if _, err := p.Create(t.Context(), promised("pvc-1", 1)); err == nil {
			t.Fatal("created in a pool that cannot be activated")
		}
		eventually(t, func() bool {
			if poolOf(t, p, thin).Problem == "" {
				t.Fatal("what LVM reports hides that the pool cannot be activated")
			}
			return tried.Load() > 5
		}, "it is not tried again")
		heals.Store(1)
		eventually(t, func() bool { pool := poolOf(t, p, thin); return pool.Problem == "" && pool.Fill.Metadata > 0 }, "it is not activated")
		create(t, p, promised("pvc-1", 1))
	})
}

// The kernel writes nothing to the metadata before the check, and only LVM runs the check.
func TestAPoolThatNeedsACheckWorksAgainOnceItIsActivatedAnew(t *testing.T) {
	for name, needed := range map[string]func(*testing.T, *lvm.Provisioner) error{
		"a volume of the pool needs the pool": func(t *testing.T, p *lvm.Provisioner) error { _, err := p.Get(t.Context(), "pvc-1"); return err },
		"a new volume needs the pool": func(t *testing.T, p *lvm.Provisioner) error {
			_, err := p.Create(t.Context(), promised("pvc-2", 1))
			return err
		},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			host := thinHost()
			_, c := counted(host)
			p, _ := start(t, c)
			create(t, p, promised("pvc-1", 10))
			onPool(host, func(p *lvmtest.ThinPool) { p.NeedsCheck = true })
			eventually(t, func() bool {
				return strings.Contains(poolOf(t, p, thin).Problem, "(lvchange --activate n --select 'pool_lv=pool || lv_name=pool' vg-a)")
			}, "the way back is not named")
			deactivate(host)
			if err := needed(t, p); err != nil {
				t.Fatal(err)
			}
			if !host.Exists("/dev/" + thin.Name) {
				t.Error("the pool is active through its volume alone")
			}
			onPool(host, func(p *lvmtest.ThinPool) {
				if p.NeedsCheck {
					t.Error("the pool was activated and the kernel still waits for a check")
				}
			})
			eventually(t, func() bool { pool := poolOf(t, p, thin); return pool.Problem == "" && pool.Fill.Metadata > 0 }, "the pool does not work")
			create(t, p, promised("pvc-3", 1))
		}))
	}
}

func TestAPoolThatDoesNotZeroTakesNothingNew(t *testing.T) {
	host := thinHost()
	onPool(host, func(p *lvmtest.ThinPool) { p.Unzeroed = true })
	p := over(t, host)
	if problem := poolOf(t, p, thin).Problem; !strings.Contains(problem, "lvchange --zero y vg-a/pool") {
		t.Errorf("the problem is %q", problem)
	}
	if _, err := p.Create(t.Context(), promised("pvc-1", 1)); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("creating: %v", err)
	}
}

// deaf is a machine whose device mapper does not answer.
type deaf struct{ *lvmtest.Host }

func (deaf) Target(string) (kind, status string, err error) {
	return "", "", errors.New("not permitted")
}

func TestAPoolWhoseFillTheKernelDoesNotTellTakesNothingNew(t *testing.T) {
	host := thinHost()
	_, c := counted(host)
	c.Devices = deaf{host}
	p, _ := start(t, c)
	if problem := poolOf(t, p, thin).Problem; !strings.Contains(problem, "not permitted") {
		t.Errorf("the problem is %q", problem)
	}
	if _, err := p.Create(t.Context(), promised("pvc-1", 1)); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("creating: %v", err)
	}
	create(t, p, request("pvc-1", 1))
}

// listener counts how often the kernel is asked for a target.
type listener struct {
	*lvmtest.Host
	asked atomic.Int64
}

func (l *listener) Target(name string) (kind, status string, err error) {
	l.asked.Add(1)
	return l.Host.Target(name)
}

// rounds waits until the kernel was asked n more times.
func (l *listener) rounds(t *testing.T, n int64) {
	t.Helper()
	before := l.asked.Load()
	eventually(t, func() bool { return l.asked.Load() >= before+n }, "the kernel is not asked")
}

func TestAFillThatMovesByAHundredthIsSignalledWithoutAnyProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := thinHost()
		counter, c := counted(host)
		devices := &listener{Host: host}
		c.Devices = devices
		p, _ := start(t, c)
		awaitChange(t, p) // it watches
		v := create(t, p, promised("pvc-1", 100))
		poolOf(t, p, thin)
		counter.Take()
		silent := func() bool {
			select {
			case <-p.Changed():
				return false
			default:
				return true
			}
		}
		silent() // takes the signal of the create
		host.On(v.Content.Source, func(v *lvmtest.Volume) { v.Data = unit - 1<<16 })
		devices.rounds(t, 10)
		if !silent() {
			t.Error("a fill that moved by less than a hundredth is signalled")
		}
		write(host, v, 1)
		awaitChange(t, p)
		if pool := poolOf(t, p, thin); pool.Fill.Data != unit {
			t.Errorf("reported %+v", pool)
		}
		if got := counter.Take(); len(got) != 0 {
			t.Errorf("started %v", got)
		}
	})
}

func TestNothingIsAskedOfTheKernelWithoutThinPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		_, c := counted(host)
		devices := &listener{Host: host}
		c.Devices = devices
		p, stop := start(t, c)
		awaitChange(t, p) // it watches
		create(t, p, request("pvc-1", 1))
		host.AddThinPool(vg.Name, "pool", 10)
		if asked := devices.asked.Load(); asked != 0 {
			t.Errorf("the kernel was asked %d times", asked)
		}
		eventually(t, func() bool { pools, err := p.Report(t.Context()); return err == nil && len(pools) == 2 }, "a new thin pool was not noticed")
		devices.rounds(t, 10)
		stop()
	})
}

func TestAThinPoolThatIsNotActiveIsActivatedBeforeItPromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := thinHost()
		host.On("/dev/"+thin.Name, func(v *lvmtest.Volume) { v.Active = false })
		counter, c := counted(host)
		p, _ := start(t, c)
		awaitChange(t, p) // it watches
		if pool := poolOf(t, p, thin); pool.Problem != "" || pool.Fill != (provision.Fill{}) {
			t.Errorf("reported %+v", pool)
		}
		if got := counter.Take(); got["lvchange"] != 0 {
			t.Errorf("a pool without volumes of Berth's was activated: %v", got)
		}
		host.Around = only("lvchange", func(c run.Command, _ func() ([]byte, error)) ([]byte, error) { return nil, exit5(c) })
		if _, err := p.Create(t.Context(), promised("pvc-1", 1)); !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "something strange") {
			t.Errorf("creating in a pool that cannot be activated: %v", err)
		}
		if problem := poolOf(t, p, thin).Problem; !strings.Contains(problem, "something strange") {
			t.Errorf("the problem is %q", problem)
		}
		host.Around = nil
		create(t, p, promised("pvc-1", 1))
		create(t, p, promised("pvc-2", 1))
		if pool := poolOf(t, p, thin); pool.Problem != "" || pool.Fill.Metadata != 11 {
			t.Errorf("reported %+v", pool)
		}
		if got := counter.Take(); got["lvchange"] != 2 || got["lvcreate"] != 2 {
			t.Errorf("started %v, want one attempt in vain, one activation and two creates", got)
		}
	})
}

func TestAfterARebootThinVolumesAreActivatedWithTheirPool(t *testing.T) {
	host := thinHost()
	host.Edit(func(groups map[string]*lvmtest.Group) string {
		volumes := groups[vg.Name].Volumes
		for _, id := range []string{"pvc-1", "pvc-2"} {
			volumes[id] = &lvmtest.Volume{Extents: 1, Pool: "pool", Tags: []string{"berth.dev/volume=" + id}}
		}
		volumes["theirs"] = &lvmtest.Volume{Extents: 1, Pool: "pool"}
		volumes["pool"].Active = false
		return ""
	})
	counter, c := counted(host)
	p, _ := start(t, c)
	poolOf(t, p, thin)
	p.Wait()
	for _, id := range []string{"pvc-1", "pvc-2"} {
		if v, err := p.Get(t.Context(), id); err != nil || v.Problem != "" || v.Pool != thin || !host.Exists(v.Content.Source) {
			t.Errorf("%s: %+v, %v", id, v, err)
		}
	}
	if host.Exists("/dev/vg-a/theirs") || !host.Exists("/dev/vg-a/pool") {
		t.Error("others' volume was activated, or the pool was not")
	}
	if got := counter.Counts()["lvchange"]; got != 1 {
		t.Errorf("%d processes activated the volumes, want 1", got)
	}
	if pool := poolOf(t, p, thin); pool.Fill.Metadata != 11 {
		t.Errorf("reported %+v", pool)
	}
}

func TestAChangeThatLeavesItsPoolInactiveIsMadeOnceMore(t *testing.T) {
	sleeps := func(host *lvmtest.Host) {
		host.On("/dev/"+thin.Name, func(v *lvmtest.Volume) { v.Active = false })
	}
	for name, tc := range map[string]struct {
		failures  int
		damaged   bool // LVM does not activate the pool again
		want      string
		creations int
	}{
		"a sound pool gets a second try":       {failures: 1, creations: 2},
		"a sound pool gets four tries at most": {failures: 9, want: "changing volume group vg-a: lvcreate", creations: 4},
		"an unsound pool gets no second try":   {failures: 1, damaged: true, want: "activating thin pool vg-a/pool: lvchange", creations: 1},
	} {
		t.Run(name, func(t *testing.T) {
			host := thinHost()
			p := over(t, host)
			creations := 0
			disturb(host, func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
				switch {
				case c.Operation == "lvcreate":
					if creations++; creations <= tc.failures {
						sleeps(host)
						return nil, exit5(c)
					}
				case c.Operation == "lvchange" && tc.damaged:
					return nil, exit5(c)
				}
				return do()
			})
			_, err := p.Create(t.Context(), promised("pvc-1", 10))
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("creating: %v, want %q", err, tc.want)
			}
			if creations != tc.creations {
				t.Errorf("LVM was asked to make the volume %d times, want %d", creations, tc.creations)
			}
			if problem := poolOf(t, p, thin).Problem; (problem != "") != tc.damaged {
				t.Errorf("the pool's problem is %q", problem)
			}
		})
	}
}
