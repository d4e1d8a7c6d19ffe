package gpt

import "testing"

// A disk may bear any bytes: those of another system, or of a tenant that had the whole disk.
func FuzzTables(f *testing.F) {
	for _, block := range []int64{512, 4096} {
		d := newDisk(4<<20, block)
		first, last := d.Whole()
		d.write(d.Writes(Partition{Type: GUID{1}, ID: GUID{2}, First: first, Last: last, Name: "pvc-1"})...)
		f.Add(block == 512, d.bytes[:32<<10], d.bytes[d.Size-32<<10:])
	}
	f.Fuzz(func(t *testing.T, small bool, head, tail []byte) {
		const size = 4 << 20
		if len(head) > mebibyte || len(tail) > mebibyte {
			return
		}
		i := Image{Geometry: Geometry{Size: size, Block: 4096}, Head: head, Tail: tail}
		if small {
			i.Block = 512
		}
		for _, table := range []Table{i.Primary(), i.Backup()} {
			if !table.Valid && table.Partitions != nil {
				t.Errorf("an invalid table has partitions: %+v", table)
			}
		}
	})
}
