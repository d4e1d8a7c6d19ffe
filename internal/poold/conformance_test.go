package poold_test

import (
	"fmt"
	"testing"

	"berth.dev/berth/internal/mount"
	mountconformance "berth.dev/berth/internal/mount/conformance"
	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/memory"
)

func TestProvisionerConformanceAcrossTheSocket(t *testing.T) {
	conformance.Run(t, harness)
}

func TestConformanceOfSnapshotsAcrossTheSocket(t *testing.T) {
	conformance.RunSnapshots(t, harness)
}

func harness(t *testing.T) conformance.Harness {
	d := newDisks()
	var stop func()
	start := func() provision.Provisioner {
		s := socket(t)
		stopServing := serve(t, poold.Config{Socket: s, Node: localNode(d)})
		c := connected(t, s)
		stop = func() { c.Close(); stopServing() }
		return c
	}
	return conformance.Harness{
		Provisioner: start(),
		Pool:        pool,
		Restart: func() provision.Provisioner {
			stop()
			return start()
		},
		PutForeign: func(name string, size int64) {
			if err := d.PutForeign(pool, name, size); err != nil {
				t.Fatal(err)
			}
		},
		Open:     func(v provision.Volume) func() { return d.Open(v.ID) },
		Scramble: func(provision.Volume) {},
		Formats:  d.Formats,
		Write:    func(v provision.Volume, text string) { d.Write(v.ID, text) },
		Read:     func(v provision.Volume, bytes int) string { return d.Read(v.ID)[:bytes] },
	}
}

func TestMounterConformanceAcrossTheSocket(t *testing.T) {
	mountconformance.Run(t, func(t *testing.T) mountconformance.Harness {
		d := memory.NewDisks(memory.PoolConfig{PoolRef: pool, Total: 10 << 30})
		s := socket(t)
		serve(t, poold.Config{Socket: s, Node: poold.NewLocal(memory.New(d, nil), mountmemory.New(d))})
		c := connected(t, s)
		n := 0
		return mountconformance.Harness{
			Labels:  true,
			Mounter: mount.Mounter(c),
			Device: func(fs string) provision.Volume {
				n++
				return device(t, c, fmt.Sprintf("pvc-%d", n), fs)
			},
			Enlarge: func(v provision.Volume) {
				if _, err := c.Expand(t.Context(), provision.ExpandRequest{ID: v.ID, Size: v.Size + 64<<20}); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

func device(t *testing.T, p provision.Provisioner, id, fs string) provision.Volume {
	t.Helper()
	v, err := p.Create(t.Context(), provision.CreateRequest{ID: id, Pool: pool, Size: 300 << 20})
	if err == nil && fs != "" {
		_, err = p.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: fs})
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}
