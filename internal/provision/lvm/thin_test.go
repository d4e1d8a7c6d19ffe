package lvm_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// thinHost has a group of 200 units with a thin pool of 100, which takes 102.
func thinHost() *lvmtest.Host {
	host := lvmtest.NewHost(map[string]int64{vg.Name: 200})
	host.AddThinPool(vg.Name, "pool", 100)
	return host
}

// over starts a provisioner over a host, and returns once it watches the host.
func over(t *testing.T, host *lvmtest.Host) *lvm.Provisioner {
	t.Helper()
	_, c := counted(host)
	p, _ := start(t, c)
	awaitChange(t, p) // it watches
	return p
}

// promised returns a request that allows volumes of twice the pool's size in total.
func promised(id string, units int64) provision.CreateRequest {
	r := requestIn(thin, id, units)
	r.Limits.Overprovision = 200
	return r
}

// onPool changes a thin pool as the kernel does, without any change of the group.
func onPool(host *lvmtest.Host, f func(*lvmtest.ThinPool)) {
	host.On("/dev/"+thin.Name, func(v *lvmtest.Volume) { f(v.Thin) })
}

// write puts so many units of data into a thin volume.
func write(host *lvmtest.Host, v provision.Volume, units int64) {
	host.On(v.Content.Source, func(v *lvmtest.Volume) { v.Data = units * unit })
}

func poolOf(t *testing.T, p provision.Provisioner, ref provision.PoolRef) provision.Pool {
	t.Helper()
	pools, err := p.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pool := range pools {
		if pool.PoolRef == ref {
			return pool
		}
	}
	t.Fatalf("the report lacks %v: %+v", ref, pools)
	return provision.Pool{}
}

func create(t *testing.T, p provision.Provisioner, r provision.CreateRequest) provision.Volume {
	t.Helper()
	v, err := p.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAThinPoolMayBePromisedAsOftenAsItsClassSaysAndNoMore(t *testing.T) {
	p := over(t, thinHost())
	create(t, p, promised("pvc-1", 120))
	create(t, p, promised("pvc-2", 70))
	if _, err := p.Create(t.Context(), promised("pvc-3", 11)); !errors.Is(err, provision.ErrNoSpace) {
		t.Errorf("more than twice the pool: %v", err)
	}
	if _, err := p.Create(t.Context(), requestIn(thin, "pvc-3", 1)); !errors.Is(err, provision.ErrNoSpace) {
		t.Errorf("for a class that promises once: %v", err)
	}
	more := provision.ExpandRequest{ID: "pvc-2", Size: 81 * unit, Limits: provision.Limits{Overprovision: 200}}
	if _, err := p.Expand(t.Context(), more); !errors.Is(err, provision.ErrNoSpace) {
		t.Errorf("growing to more than twice the pool: %v", err)
	}
	more.Size = 80 * unit
	if v, err := p.Expand(t.Context(), more); err != nil || v.Size != 80*unit {
		t.Errorf("growing to twice the pool: %+v, %v", v, err)
	}
	if pool := poolOf(t, p, thin); pool.Free != -100*unit || pool.Total != 100*unit || pool.Foreign != 0 {
		t.Errorf("reported %+v", pool)
	}
}

func TestAPoolThatIsFilledTooFarTakesNothingNew(t *testing.T) {
	for name, fill := range map[string]func(*lvmtest.Host, provision.Volume){
		"data":     func(h *lvmtest.Host, v provision.Volume) { write(h, v, 80) },
		"metadata": func(h *lvmtest.Host, _ provision.Volume) { onPool(h, func(p *lvmtest.ThinPool) { p.Filled = 80 }) },
	} {
		t.Run(name, func(t *testing.T) {
			host := thinHost()
			p := over(t, host)
			v := create(t, p, promised("pvc-1", 90))
			r := promised("pvc-2", 1)
			r.Limits.MaxFill = 80
			fill(host, v) // seen at once, although no interval has passed
			if _, err := p.Create(t.Context(), r); !errors.Is(err, provision.ErrNoSpace) {
				t.Errorf("creating: %v", err)
			}
			if _, err := p.Expand(t.Context(), provision.ExpandRequest{ID: v.ID, Size: 91 * unit, Limits: r.Limits}); !errors.Is(err, provision.ErrNoSpace) {
				t.Errorf("growing: %v", err)
			}
			r.Limits.MaxFill = 81
			create(t, p, r)
		})
	}
}

func TestTheFiguresOfAGroupAndItsThinPoolAreKeptApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := thinHost()
		p := over(t, host)
		thick, thinly := create(t, p, request("pvc-1", 10)), create(t, p, promised("pvc-2", 150))
		host.PutForeignThin(vg.Name, "pool", "theirs", "", 20*unit)
		host.PutForeignThin(vg.Name, "pool", "snapshot", "pvc-2", 150*unit)
		host.PutForeign(vg.Name, "thick", 5*unit)
		write(host, thinly, 30)
		onPool(host, func(p *lvmtest.ThinPool) { p.Filled = 17 })
		want := []provision.Pool{{
			PoolRef: vg, Total: 200 * unit, Foreign: 107 * unit, Free: 83 * unit, Unit: unit, Volumes: []provision.Volume{thick},
		}, {
			PoolRef: thin, Total: 100 * unit, Foreign: 170 * unit, Free: -220 * unit, Unit: unit, Volumes: []provision.Volume{thinly},
			Fill: provision.Fill{Data: 30 * unit, Metadata: 17},
		}}
		eventually(t, func() bool {
			pools, err := p.Report(t.Context())
			return err == nil && cmp.Equal(pools, want)
		}, "the figures are not as they should be")
		if err := p.Delete(t.Context(), "pvc-2"); err != nil {
			t.Errorf("deleting the origin of a thin snapshot: %v", err)
		}
		if pool := poolOf(t, p, thin); pool.Foreign != 170*unit || pool.Free != -70*unit || pool.Fill.Data != 0 {
			t.Errorf("after the deletion %+v", pool)
		}
	})
}

func TestANameIsUniqueInItsGroupAcrossPools(t *testing.T) {
	host := thinHost()
	host.PutForeign(vg.Name, "pvc-theirs", unit)
	host.PutForeignThin(vg.Name, "pool", "pvc-thin", "", unit)
	p := over(t, host)
	create(t, p, request("pvc-1", 2))
	create(t, p, requestIn(thin, "pvc-2", 2))
	for name, r := range map[string]provision.CreateRequest{
		"a thin volume with the name of a thick volume":         requestIn(thin, "pvc-1", 2),
		"a thick volume with the name of a thin volume":         request("pvc-2", 2),
		"a thin volume with the name of a foreign thick volume": requestIn(thin, "pvc-theirs", 1),
		"a thick volume with the name of a foreign thin volume": request("pvc-thin", 1),
		"a thin volume with the name of a foreign thin volume":  requestIn(thin, "pvc-thin", 1),
	} {
		if _, err := p.Create(t.Context(), r); !errors.Is(err, provision.ErrConflict) {
			t.Errorf("%s: %v, want ErrConflict", name, err)
		}
	}
	if err := p.Delete(t.Context(), "pvc-thin"); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("deleting others' thin volume: %v", err)
	}
}

func TestPoolsThatAreNotThereAreMissing(t *testing.T) {
	host := thinHost()
	host.PutForeign(vg.Name, "thick", unit)
	p := over(t, host)
	for _, ref := range []provision.PoolRef{
		{Type: provision.LVMThin, Name: vg.Name}, {Type: provision.LVM, Name: thin.Name}, {Type: provision.Device, Name: thin.Name},
		{Type: provision.LVMThin, Name: vg.Name + "/thick"}, {Type: provision.LVMThin, Name: vg.Name + "/none"}, {Type: provision.LVMThin, Name: "none/pool"},
	} {
		if _, err := p.Create(t.Context(), requestIn(ref, "pvc-1", 1)); !errors.Is(err, provision.ErrPoolMissing) {
			t.Errorf("%+v: %v, want ErrPoolMissing", ref, err)
		}
	}
}

func TestAThinPoolIsNeverTakenForAVolume(t *testing.T) {
	host := thinHost()
	host.Edit(func(groups map[string]*lvmtest.Group) string {
		g := groups[vg.Name] // an administrator made a thin pool of one of Berth's volumes
		g.Volumes["pvc-9"] = &lvmtest.Volume{Extents: 10, Thin: &lvmtest.ThinPool{}, Tags: []string{"berth.dev/volume=pvc-9"}}
		return ""
	})
	p := over(t, host)
	create(t, p, requestIn(provision.PoolRef{Type: provision.LVMThin, Name: vg.Name + "/pvc-9"}, "pvc-1", 1))
	if err := p.Delete(t.Context(), "pvc-9"); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("deleting a thin pool: %v", err)
	}
	if err := p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Errorf("deleting from it: %v", err)
	}
	host.On("/dev/vg-a/pvc-9", func(v *lvmtest.Volume) {
		if v == nil {
			t.Error("the pool is gone")
		}
	})
}

func TestASnapshotThatWouldGoWithItsOriginKeepsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, pool := range []provision.PoolRef{vg, thin} {
			host := thinHost()
			p := over(t, host)
			create(t, p, requestIn(pool, "pvc-1", 2))
			snapshot := func(f func(g *lvmtest.Group)) {
				host.Edit(func(groups map[string]*lvmtest.Group) string {
					g := groups[vg.Name]
					f(g)
					g.Seqno++
					return g.Device
				})
			}
			before := poolOf(t, p, vg).Foreign
			snapshot(func(g *lvmtest.Group) { g.Volumes["cow"] = &lvmtest.Volume{Extents: 1, Origin: "pvc-1"} })
			eventually(t, func() bool { return poolOf(t, p, vg).Foreign == before+unit }, "the snapshot was not noticed")
			if err := p.Delete(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrInUse) || !strings.Contains(err.Error(), "vg-a/cow") {
				t.Errorf("deleting: %v, want it to name the snapshot", err)
			}
			snapshot(func(g *lvmtest.Group) { delete(g.Volumes, "cow") })
			eventually(t, func() bool { return p.Delete(t.Context(), "pvc-1") == nil }, "the volume cannot be deleted")
		}
	})
}

func TestFactsDecideWhenAThinCommandFails(t *testing.T) {
	for name, tc := range map[string]struct {
		disturb func(h *lvmtest.Host, do func() ([]byte, error))
		want    error
	}{
		"LVM made the volume all the same": {func(_ *lvmtest.Host, do func() ([]byte, error)) { _, _ = do() }, nil},
		"the pool vanished": {func(h *lvmtest.Host, _ func() ([]byte, error)) {
			h.Edit(func(groups map[string]*lvmtest.Group) string { delete(groups[vg.Name].Volumes, "pool"); return "" })
		}, provision.ErrPoolMissing},
		"the pool filled up": {func(h *lvmtest.Host, _ func() ([]byte, error)) {
			h.On("/dev/vg-a/pvc-1", func(v *lvmtest.Volume) { v.Data = 100 * unit })
		}, provision.ErrNoSpace},
		"another program was promised the rest": {func(h *lvmtest.Host, _ func() ([]byte, error)) {
			h.PutForeignThin(vg.Name, "pool", "theirs", "", 200*unit)
		}, provision.ErrNoSpace},
		"the pool broke": {func(h *lvmtest.Host, _ func() ([]byte, error)) {
			onPool(h, func(p *lvmtest.ThinPool) { p.Mode = "ro" })
		}, provision.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			host := thinHost()
			p := over(t, host)
			create(t, p, promised("pvc-1", 100))
			host.Around = only("lvcreate", func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
				tc.disturb(host, do)
				return nil, exit5(c)
			})
			if v, err := p.Create(t.Context(), promised("pvc-2", 2)); !errors.Is(err, tc.want) || tc.want == nil && (err != nil || v.Size != 2*unit) {
				t.Errorf("got %+v, %v, want %v", v, err, tc.want)
			}
		})
	}
}

func TestAnotherChangeDuringAThinOneIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := thinHost()
		counter, c := counted(host)
		p, _ := start(t, c)
		awaitChange(t, p) // it watches
		poolOf(t, p, thin)
		counter.Take()
		host.Around = only("lvcreate", func(_ run.Command, do func() ([]byte, error)) ([]byte, error) {
			host.PutForeignThin(vg.Name, "pool", "theirs", "", 7*unit)
			return do()
		})
		create(t, p, promised("pvc-1", 1))
		if pool := poolOf(t, p, thin); pool.Foreign != 7*unit {
			t.Errorf("reported %+v", pool)
		}
		if got := counter.Take(); got["fullreport"] == 0 {
			t.Errorf("the group was not read again: %v", got)
		}
	})
}

func TestAVolumeThatIsToBeACopyIsNeverMadeBlank(t *testing.T) {
	p := over(t, thinHost())
	for _, pool := range []provision.PoolRef{vg, thin} {
		r := requestIn(pool, "pvc-copy", 10)
		r.Source.Volume = "pvc-source"
		if _, err := p.Create(t.Context(), r); !errors.Is(err, provision.ErrNotFound) {
			t.Errorf("in %s: %v", pool.Name, err)
		}
		if made := poolOf(t, p, pool).Volumes; len(made) > 0 {
			t.Errorf("in %s there is %+v", pool.Name, made)
		}
	}
}
