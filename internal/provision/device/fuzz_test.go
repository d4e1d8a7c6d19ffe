package device

import (
	"testing"

	"berth.dev/berth/internal/provision/device/gpt"
)

// What is taken for a volume lies whole on its disk, between the tables.
func FuzzRecord(f *testing.F) {
	f.Add(int64(64<<20), false, int64(2048), int64(40959), uint64(0), "pvc-1")
	f.Add(int64(1), true, int64(-1), int64(1<<62), uint64(1<<63), "")
	f.Fuzz(func(t *testing.T, size int64, large bool, first, last int64, attributes uint64, name string) {
		g := gpt.Geometry{Size: max(size, 0), Block: 512}
		if large {
			g.Block = 4096
		}
		for _, kind := range types {
			r, err := parseRecord(gpt.Partition{Type: kind, First: first, Last: last, Attributes: attributes, Name: name}, g)
			if err != nil {
				continue
			}
			if start, length := r.extent(g); start < minFirst || length <= 0 || start > g.Size-minTail-length {
				t.Errorf("a volume from %d, %d bytes long, on a disk of %d bytes", start, length, g.Size)
			}
		}
	})
}
