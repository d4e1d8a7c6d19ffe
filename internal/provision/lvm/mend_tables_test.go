package lvm_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// extending leaves the thin pool as a command does that dies while it extends the pool.
func extending(host *lvmtest.Host, recorded bool) {
	host.On("/dev/"+thin.Name, func(pool *lvmtest.Volume) {
		pool.Suspended, pool.Maps, pool.Loaded = true, pool.Extents, pool.Extents+50
		if recorded {
			pool.Extents += 50
		}
	})
}

// disturb runs something around every command, while a provisioner is at work.
func disturb(host *lvmtest.Host, around func(run.Command, func() ([]byte, error)) ([]byte, error)) {
	host.Disturb(func(h *lvmtest.Host) { h.Around = around })
}

// wantMended fails unless the thin pool is resumed, and is mapped as LVM has recorded it.
func wantMended(t *testing.T, host *lvmtest.Host) {
	t.Helper()
	host.On("/dev/"+thin.Name, func(pool *lvmtest.Volume) {
		if pool.Suspended || pool.InUse() != pool.Extents {
			t.Errorf("the pool is suspended: %v, has %d extents and is mapped to %d", pool.Suspended, pool.Extents, pool.InUse())
		}
	})
}

func TestASuspendedThinPoolOfADeadCommandIsMendedToLVMsRecord(t *testing.T) {
	for when, recorded := range map[string]bool{"before LVM records the table": false, "after LVM records the table": true} {
		for how, die := range map[string]func(*testing.T, *lvmtest.Host, *lvm.Provisioner){
			"the command and the provisioner die": func(t *testing.T, host *lvmtest.Host, _ *lvm.Provisioner) {
				extending(host, recorded)
				next := over(t, host)
				poolOf(t, next, thin)
				next.Wait()
			},
			"the command alone dies": func(t *testing.T, host *lvmtest.Host, p *lvm.Provisioner) {
				disturb(host, only("lvextend", func(c run.Command, _ func() ([]byte, error)) ([]byte, error) {
					extending(host, recorded)
					return nil, exit5(c)
				}))
				host.On("/dev/vg-a/pvc-1", func(v *lvmtest.Volume) { v.Data = 95 * unit })
				create(t, p, promised("pvc-2", 1)) // which reads how full the pool is
				wish := provision.PoolWish{Pool: thin, Extension: provision.Extension{At: 80, By: 20}}
				if got, err := p.Ensure(t.Context(), wish); err == nil {
					t.Errorf("the extension that died is told as %+v", got)
				}
			},
		} {
			t.Run(how+" "+when, func(t *testing.T) {
				host := thinHost()
				p := over(t, host)
				create(t, p, promised("pvc-1", 100))
				die(t, host, p)
				wantMended(t, host)
			})
		}
	}
}

func TestAVolumeIsResumedWithTheTableOfLVMsRecord(t *testing.T) {
	host := thinHost()
	create(t, over(t, host), request("pvc-1", 2))
	host.On("/dev/vg-a/pvc-1", func(v *lvmtest.Volume) { v.Suspended, v.Loaded = true, 5 })
	p := over(t, host)
	poolOf(t, p, vg)
	p.Wait()
	host.On("/dev/vg-a/pvc-1", func(v *lvmtest.Volume) {
		if v.Suspended || v.InUse() != 2 {
			t.Errorf("suspended: %v, mapped to %d extents", v.Suspended, v.InUse())
		}
	})
}

// An administrator may have resumed one of them.
func TestAVolumeThatOthersResumedMeanwhileIsNoProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := thinHost()
		first := over(t, host)
		create(t, first, request("pvc-1", 2))
		create(t, first, request("pvc-2", 2))
		suspend(host, "pvc-1")
		suspend(host, "pvc-2")
		disturb(host, only("fullreport", func(_ run.Command, do func() ([]byte, error)) ([]byte, error) {
			out, err := do()
			host.On("/dev/vg-a/pvc-1", func(v *lvmtest.Volume) { v.Suspended = false })
			return out, err
		}))
		p := over(t, host)
		poolOf(t, p, vg)
		p.Wait()
		disturb(host, nil)
		wantResumed(t, host, "pvc-2")
		// A suspended volume is not wiped until the provisioner knows that it is resumed.
		for _, id := range []string{"pvc-1", "pvc-2"} {
			if err := p.Delete(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		settle(t, p)
	})
}

func TestAPoolThatIsLiveThroughItsVolumesAloneIsResumed(t *testing.T) {
	host := thinHost()
	create(t, over(t, host), promised("pvc-1", 2))
	extending(host, false)
	host.On("/dev/"+thin.Name, func(pool *lvmtest.Volume) { pool.Active = false })
	p := over(t, host)
	poolOf(t, p, thin)
	p.Wait()
	wantMended(t, host)
}

func TestNoVolumeIsActivatedInAPoolThatIsSuspended(t *testing.T) {
	host := thinHost()
	create(t, over(t, host), promised("pvc-1", 2))
	extending(host, false)
	host.On("/dev/vg-a/pvc-1", func(v *lvmtest.Volume) { v.Active = false })
	disturb(host, only("lvchange", func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
		host.On("/dev/"+thin.Name, func(pool *lvmtest.Volume) {
			if pool.Suspended && mentions(c, "vg-a/pvc-1") {
				t.Error("the kernel activates no thin volume of a pool that is suspended")
			}
		})
		return do()
	}))
	p := over(t, host)
	poolOf(t, p, thin)
	p.Wait()
	wantMended(t, host)
	if !host.Exists("/dev/vg-a/pvc-1") {
		t.Error("the volume was not activated")
	}
}

func TestAPoolThatCannotBeResumedTakesNothingUntilItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := thinHost()
		create(t, over(t, host), promised("pvc-1", 2))
		extending(host, false)
		broken := true
		disturb(host, only("lvchange", func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
			if broken {
				return nil, exit5(c)
			}
			return do()
		}))
		_, c := counted(host)
		p, stop := start(t, c)
		eventually(t, func() bool { return strings.Contains(poolOf(t, p, thin).Problem, "lvchange --refresh "+thin.Name) }, "nothing is said of it")
		if _, err := p.Create(t.Context(), promised("pvc-2", 1)); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("created in a pool that is suspended: %v", err)
		}
		wish := provision.PoolWish{Pool: thin, Extension: provision.Extension{At: 80, By: 20}}
		if got, err := p.Ensure(t.Context(), wish); err != nil || got.Reason != provision.PoolTroubled {
			t.Errorf("extending a pool that is suspended: %+v, %v", got, err)
		}
		if err := p.Delete(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("deleted in a pool that is suspended: %v", err)
		}
		stop()
		broken = false
		p, _ = start(t, c)
		eventually(t, func() bool { return poolOf(t, p, thin).Problem == "" }, "it is not resumed")
		wantMended(t, host)
		if err := p.Delete(t.Context(), "pvc-1"); err != nil {
			t.Error(err)
		}
	})
}

func TestAPoolThatSuspendsWhileTheProvisionerRunsIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := thinHost()
		_, c := counted(host)
		p, _ := start(t, c)
		create(t, p, promised("pvc-1", 2))
		extending(host, true) // as if a command of another process died
		eventually(t, func() bool {
			<-p.Changed()
			poolOf(t, p, thin)
			resumed := false
			host.On("/dev/"+thin.Name, func(pool *lvmtest.Volume) { resumed = !pool.Suspended })
			return resumed
		}, "it is not resumed")
		wantMended(t, host)
	})
}

func TestAPoolThatOthersAreChangingIsLeftAlone(t *testing.T) {
	host := thinHost()
	p := over(t, host)
	create(t, p, promised("pvc-1", 2))
	suspended := func(yes bool) {
		host.On("/dev/"+thin.Name, func(pool *lvmtest.Volume) { pool.Suspended = yes })
	}
	suspended(true)
	// LVM's report waits for the end of a change.
	disturb(host, func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
		switch c.Operation {
		case "fullreport":
			suspended(false)
		case "lvmconfig":
		default:
			t.Errorf("%v was started", c)
		}
		return do()
	})
	_, c := counted(host)
	next, _ := start(t, c)
	if got := poolOf(t, next, thin); got.Problem != "" {
		t.Errorf("reported %+v", got)
	}
	next.Wait()
}

// unloading makes dropping a table an effect at which a process may end.
type unloading struct {
	*lvmtest.Host
	dying *crash
}

func (u unloading) Unload(name string) error {
	if err := u.dying.effect(); err != nil {
		return err
	}
	if err := u.Host.Unload(name); err != nil {
		return err
	}
	return u.dying.effect()
}

func TestAProcessMayEndAtAnyEffectOfMendingAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, recorded := range []bool{false, true} {
			for at := 1; ; at++ {
				host := thinHost()
				create(t, over(t, host), promised("pvc-1", 2))
				extending(host, recorded)
				dying := &crash{at: at}
				disturb(host, dying.around)
				_, c := counted(host)
				c.Devices = unloading{host, dying}
				p, stop := start(t, c)
				_, _ = p.Report(t.Context())
				p.Wait()
				stop()
				ended := !dying.dead()
				disturb(host, nil)
				next := over(t, host)
				poolOf(t, next, thin)
				next.Wait()
				if wantMended(t, host); t.Failed() {
					t.Fatalf("crashed at effect %d, recorded: %v", at, recorded)
				}
				if ended {
					if effects := 2 * (5 + 1); at != effects+1 {
						t.Errorf("mending has %d effects, want %d", at-1, effects)
					}
					break
				}
			}
		}
	})
}
