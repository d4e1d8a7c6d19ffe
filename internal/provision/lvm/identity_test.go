package lvm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// identities returns harnesses over a thick and a thin pool, with hooks that add copies of disks
// and groups of the same name, and that take the group away.
func identities() map[string]func(*testing.T) conformance.Harness {
	starts := map[string]func(*testing.T) conformance.Harness{}
	for name, pool := range map[string]provision.PoolRef{"thick": vg, "thin": thin} {
		starts[name] = func(t *testing.T) conformance.Harness {
			host := lvmtest.NewHost(map[string]int64{vg.Name: 210})
			host.AddThinPool(vg.Name, "pool", 100)
			h := harness(t, host, pool)
			h.Twin = func(v provision.Volume) func() {
				putGroup(host, "vgclone", "vgclone", "clone", "/dev/sdz", v.ID)
				return func() { drop(host, "vgclone") }
			}
			h.Namesake = func(id string) func() {
				putGroup(host, "a-first", vg.Name, "other-node", "/dev/sdz", id)
				return func() { drop(host, "a-first") }
			}
			h.Away = func() func() {
				away := drop(host, vg.Name)
				return func() {
					host.Edit(func(groups map[string]*lvmtest.Group) string { groups[vg.Name] = away; return away.Device })
				}
			}
			return h
		}
	}
	return starts
}

func drop(host *lvmtest.Host, key string) (g *lvmtest.Group) {
	host.Edit(func(groups map[string]*lvmtest.Group) string {
		g = groups[key]
		delete(groups, key)
		return g.Device
	})
	return g
}

func TestPlayedLVMPassesTheIdentitySuite(t *testing.T) {
	for name, start := range identities() {
		t.Run(name, func(t *testing.T) {
			conformance.RunTwins(t, start)
			conformance.RunNamesakes(t, start)
			conformance.RunAway(t, start)
		})
	}
}

func TestAVolumeIsUsableAgainOnceTheCopyOfItsDiskIsTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		_, c := counted(host)
		p, _ := start(t, c)
		v := create(t, p, request("pvc-1", 8))
		looked := func() (provision.Volume, error) {
			if _, err := p.Report(t.Context()); err != nil {
				t.Fatal(err)
			}
			return p.Get(t.Context(), v.ID)
		}
		putGroup(host, "vgclone", "vgclone", "clone", "/dev/sdz", v.ID)
		eventually(t, func() bool { _, err := looked(); return errors.Is(err, provision.ErrConflict) }, "the copy is not noticed")
		drop(host, "vgclone")
		eventually(t, func() bool { got, err := looked(); return err == nil && got == v }, "the volume is not usable again")
	})
}

// recorder notes the arguments of all commands.
type recorder struct {
	run.Runner
	mu   sync.Mutex
	args [][]string
}

func (r *recorder) note(c run.Command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.args = append(r.args, c.Args)
}

func (r *recorder) Query(ctx context.Context, c run.Command) ([]byte, error) {
	r.note(c)
	return r.Runner.Query(ctx, c)
}

func (r *recorder) Change(c run.Command) ([]byte, error) {
	r.note(c)
	return r.Runner.Change(c)
}

func (r *recorder) taken() [][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.args)
}

func TestEveryLVMCommandFiltersTheDevicesOfPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		host.Attach("loop5", published)
		host.Settings.GlobalFilter = []string{"r|^/dev/drbd|"}
		_, c := counted(host)
		recorded := &recorder{Runner: c.Runner}
		c.Runner = recorded
		p, _ := start(t, c)
		create(t, p, request("pvc-1", 8))
		if _, err := p.Expand(t.Context(), provision.ExpandRequest{ID: "pvc-1", Size: 16 * unit}); err != nil {
			t.Error(err)
		}
		if err := p.Delete(t.Context(), "pvc-1"); err != nil {
			t.Error(err)
		}
		settle(t, p)
		for _, args := range recorded.taken() {
			if args[0] != "lvmconfig" && (!strings.Contains(args[2], "devices/filter=[") || !strings.Contains(args[2], "^/dev/loop5$") || strings.Contains(args[2], "global_filter")) {
				t.Errorf("%v", args)
			}
		}
	})
}

// A machine whose distribution comes without LVM has no such file: the agent brings the programs alone.
func TestAMachineWithoutAConfigurationFileOfLVMIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		host.Settings.None = true
		_, c := counted(host)
		p, _ := start(t, c)
		create(t, p, request("pvc-1", 8))
		settle(t, p)
	})
}

// An administrator removes a volume and makes another one of its name. No event tells the
// provisioner before the volume is deleted.
func TestADeletionSparesAVolumeThatGotTheNameMeanwhile(t *testing.T) {
	for name, tc := range map[string]struct {
		pool provision.PoolRef
		wipe provision.Wipe
		ids  []string
	}{
		"a volume that is removed":                    {vg, provision.WipeNone, []string{"pvc-1"}},
		"a volume that is wiped first":                {vg, provision.WipeZero, []string{"pvc-1"}},
		"a thin volume":                               {thin, provision.WipeNone, []string{"pvc-1"}},
		"a volume that is removed beside another one": {vg, provision.WipeNone, []string{"pvc-1", "pvc-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			host := thinHost()
			_, c := counted(host)
			g := gated(c.Runner)
			c.Runner = g
			p, _ := start(t, c)
			awaitChange(t, p) // it watches
			for _, id := range append(tc.ids, "pvc-9") {
				r := requestIn(tc.pool, id, 2)
				r.Wipe = tc.wipe
				create(t, p, r)
			}
			poolOf(t, p, tc.pool)
			host.Edit(func(groups map[string]*lvmtest.Group) string {
				other := *groups[vg.Name].Volumes["pvc-9"]
				other.Tags = []string{"theirs"}
				groups[vg.Name].Volumes["pvc-1"] = &other
				delete(groups[vg.Name].Volumes, "pvc-9")
				groups[vg.Name].Seqno++
				return "" // no device of the group's
			})
			if len(tc.ids) == 1 {
				close(g.open)
				if err := p.Delete(t.Context(), "pvc-1"); err != nil {
					t.Errorf("deleting it: %v", err)
				}
			} else if failed := g.removeAtOnce(t, p, tc.ids...); len(failed) > 0 {
				t.Errorf("deleting them: %v", failed)
			}
			p.Wait()
			poolOf(t, p, tc.pool) // it is read again
			host.On("/dev/vg-a/pvc-1", func(v *lvmtest.Volume) {
				if v == nil || !slices.Equal(v.Tags, []string{"theirs"}) {
					t.Errorf("the other volume of the name is %+v", v)
				}
			})
			host.On("/dev/vg-a/pvc-2", func(v *lvmtest.Volume) {
				if v != nil {
					t.Error("pvc-2 is there")
				}
			})
		})
	}
}
