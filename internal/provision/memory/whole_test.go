package memory_test

import (
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/memory"
)

func TestConformanceOfWholePools(t *testing.T) {
	conformance.RunWhole(t, func(t *testing.T) conformance.Harness {
		disks := memory.NewDisks()
		var pools []provision.PoolRef
		for i, name := range []string{"disk:a", "disk:b", "disk:c"} {
			pools = append(pools, provision.PoolRef{Type: provision.Device, Name: name})
			size := int64(100+i) * unit
			disks.AddPool(memory.PoolConfig{PoolRef: pools[i], Total: size, Unit: size})
		}
		p := memory.New(disks, nil)
		return conformance.Harness{
			Provisioner: p, Pool: pools[0], Pools: pools,
			Restart: func() provision.Provisioner {
				p.Wait()
				p = memory.New(disks, nil)
				return p
			},
			PutForeign: func(name string, size int64) {
				if err := disks.PutForeign(pools[0], name, size); err != nil {
					t.Fatal(err)
				}
			},
			Open:     func(v provision.Volume) func() { return disks.Open(v.ID) },
			Scramble: func(provision.Volume) {},
			Formats:  disks.Formats,
			Write:    func(v provision.Volume, text string) { disks.Write(v.ID, text) },
			Read:     func(v provision.Volume, bytes int) string { return padded(disks.Read(v.ID), bytes) },
		}
	})
}

// padded returns a text padded with zeros to a number of bytes.
func padded(text string, bytes int) string {
	b := make([]byte, bytes)
	copy(b, text)
	return string(b)
}
