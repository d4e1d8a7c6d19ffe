package lvm_test

import (
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run/runtest"
)

var (
	vg   = provision.PoolRef{Type: provision.LVM, Name: "vg-a"}
	thin = provision.PoolRef{Type: provision.LVMThin, Name: "vg-a/pool"}
)

const unit = lvmtest.Unit

func TestConformanceOnPlayedLVM(t *testing.T) {
	conformance.RunPlayed(t, func(t *testing.T) conformance.Harness {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100, "other": 10})
		h := harness(t, host, vg)
		h.PutForeign = func(name string, size int64) { host.PutForeign(vg.Name, name, size) }
		return h
	})
}

func TestNoPlayedVolumeShowsDataOfAnother(t *testing.T) {
	for name, pool := range map[string]provision.PoolRef{"thick": vg, "thin": thin} {
		t.Run(name, func(t *testing.T) {
			conformance.RunForgetsPlayed(t, func(t *testing.T) conformance.Harness {
				host := lvmtest.NewHost(map[string]int64{vg.Name: 210})
				host.AddThinPool(vg.Name, "pool", 100)
				return harness(t, host, pool)
			})
		})
	}
}

func TestConformanceOfThinPoolsOnPlayedLVM(t *testing.T) {
	conformance.RunPlayed(t, thinHarness)
}

func TestConformanceOfSnapshotsOnPlayedLVM(t *testing.T) {
	for name, start := range map[string]func(*testing.T) conformance.Harness{
		"thin": thinHarness,
		"thick": func(t *testing.T) conformance.Harness {
			h := harness(t, lvmtest.NewHost(map[string]int64{vg.Name: 100}), vg)
			h.Wipe = provision.WipeNone // wiping has a suite of its own
			return h
		},
	} {
		t.Run(name, func(t *testing.T) { conformance.RunSnapshots(t, start) })
	}
}

func thinHarness(t *testing.T) conformance.Harness {
	host := lvmtest.NewHost(map[string]int64{vg.Name: 110, "other": 10})
	host.AddThinPool(vg.Name, "pool", 100)
	h := harness(t, host, thin)
	h.PutForeign = func(name string, size int64) { host.PutForeignThin(vg.Name, "pool", name, "", size) }
	return h
}

// harness returns a harness over one pool, without PutForeign.
func harness(t *testing.T, host *lvmtest.Host, pool provision.PoolRef) conformance.Harness {
	made := &conformance.Formats{Mkfs: host.Mkfs}
	p, stop := start(t, config(host, made.Make))
	return conformance.Harness{
		Provisioner: p,
		Pool:        pool,
		Restart: func() provision.Provisioner {
			stop()
			p, stop = start(t, config(host, made.Make))
			return p
		},
		Open: func(v provision.Volume) func() {
			host.On(v.Content.Source, func(v *lvmtest.Volume) { v.Open = true })
			return func() { host.On(v.Content.Source, func(v *lvmtest.Volume) { v.Open = false }) }
		},
		Mislead: func(v, other provision.Volume) { host.Mislead(v.Content.Source, other.Content.Source) },
		Scramble: func(v provision.Volume) {
			host.On(v.Content.Source, func(v *lvmtest.Volume) { v.Signature = "" })
		},
		WriteAt: func(v provision.Volume, text string, offset int64) { host.WriteAt(v.Content.Source, text, offset) },
		ReadAt: func(v provision.Volume, bytes int, offset int64) string {
			return host.ReadAt(v.Content.Source, bytes, offset)
		},
		Formats: made.Of,
		Write:   func(v provision.Volume, text string) { host.WriteAt(v.Content.Source, text, 0) },
		Read:    func(v provision.Volume, bytes int) string { return host.ReadAt(v.Content.Source, bytes, 0) },
	}
}

func config(host *lvmtest.Host, mkfs provision.Mkfs) lvm.Config {
	return lvm.Config{Runner: host, Devices: host, Mkfs: mkfs}
}

// start makes a provisioner and runs it until the test or the returned stop ends
// it.
func start(t testing.TB, c lvm.Config) (p *lvm.Provisioner, stop func()) {
	t.Helper()
	p, err := lvm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p, conformance.Watching(t, p.Run)
}

func request(id string, units int64) provision.CreateRequest { return requestIn(vg, id, units) }

func requestIn(pool provision.PoolRef, id string, units int64) provision.CreateRequest {
	return provision.CreateRequest{ID: id, Pool: pool, Size: units * unit, Labels: map[string]string{"claim": "data", "namespace": "shop"}}
}

func counted(host *lvmtest.Host) (*runtest.Counter, lvm.Config) {
	counter := runtest.Count(host)
	return counter, lvm.Config{Runner: counter, Devices: host, Mkfs: host.Mkfs}
}
