package gpt

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// disk is a small disk.
type disk struct {
	Geometry
	bytes []byte
}

func newDisk(size, block int64) disk {
	return disk{Geometry{Size: size, Block: block}, make([]byte, size)}
}

func (d disk) write(writes ...Write) {
	for _, w := range writes {
		copy(d.bytes[w.Offset:], w.Data)
	}
}

func (d disk) image() Image {
	return Image{Geometry: d.Geometry, Head: d.bytes[:mebibyte], Tail: d.bytes[d.Size-mebibyte:]}
}

func anyPartition(g Geometry, t *rapid.T) Partition {
	guid := rapid.Custom(func(t *rapid.T) GUID {
		return GUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "guid"))
	}).Filter(func(g GUID) bool { return g != GUID{} })
	p := Partition{
		Type: guid.Draw(t, "type"), ID: guid.Draw(t, "id"), Attributes: rapid.Uint64().Draw(t, "attributes"),
		Name: rapid.StringMatching(`[a-z0-9-]{1,36}`).Draw(t, "name"),
	}
	p.First, p.Last = g.Whole()
	return p
}

func anyDisk(t *rapid.T) disk {
	return newDisk(rapid.Int64Range(3<<20, 5<<20).Draw(t, "size")/4096*4096, rapid.SampledFrom([]int64{512, 4096}).Draw(t, "block"))
}

func TestATableIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDisk(t)
		p := anyPartition(d.Geometry, t)
		d.write(d.Writes(p)...)
		for name, table := range map[string]Table{"primary": d.image().Primary(), "backup": d.image().Backup()} {
			if !table.Valid || !slices.Equal(table.Partitions, []Partition{p}) || table.Entry == nil || *table.Entry != p {
				t.Fatalf("the %s table: %+v, want %+v", name, table, p)
			}
		}
	})
}

func TestAPartitionLeavesRoomForBothTablesAndIsAligned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDisk(t)
		first, last := d.Whole()
		begin, end := first*d.Block, (last+1)*d.Block
		if begin%mebibyte != 0 || end%mebibyte != 0 || d.Size-end < mebibyte || d.Size-end >= 2*mebibyte {
			t.Fatalf("from %d to %d of %d", begin, end, d.Size)
		}
		for _, w := range d.Writes(anyPartition(d.Geometry, t)) {
			if w.Offset+d.Block > begin && w.Offset < end || w.Offset+d.Block > d.Size || int64(len(w.Data)) != d.Block {
				t.Fatalf("a block of the table at %d is in the partition from %d to %d", w.Offset, begin, end)
			}
		}
	})
}

func TestAGUIDHasTheFormOfTheStandard(t *testing.T) {
	id, err := ParseGUID("0FC63DAF-8483-4772-8E79-3D69D8477DE4")
	if err != nil || id.String() != "0FC63DAF-8483-4772-8E79-3D69D8477DE4" {
		t.Fatalf("parsed %s: %v", id, err)
	}
	// As other programs write the type of Linux filesystems.
	want := []byte{0xaf, 0x3d, 0xc6, 0x0f, 0x83, 0x84, 0x72, 0x47, 0x8e, 0x79, 0x3d, 0x69, 0xd8, 0x47, 0x7d, 0xe4}
	if !bytes.Equal(id[:], want) {
		t.Errorf("on the disk %x, want %x", id[:], want)
	}
	for _, text := range []string{"", "0FC63DAF", "0FC63DAF-8483-4772-8E79-3D69D8477D", "0FC63DAF-8483-4772-8E79-3D69D8477DEX"} {
		if _, err := ParseGUID(text); err == nil {
			t.Errorf("%q is read as a GUID", text)
		}
	}
}

func TestADamagedTableIsNotValidAndNeverCrashesTheReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDisk(4<<20, 512)
		p := anyPartition(d.Geometry, t)
		writes := d.Writes(p)
		d.write(writes...)
		w := writes[rapid.SampledFrom([]int{0, 1, 2, 4}).Draw(t, "block")]
		reach := int64(headerSize) // of a header, the rest is not summed
		at := w.Offset + rapid.Int64Range(0, reach-1).Draw(t, "at")
		d.bytes[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		primary, backup := d.image().Primary(), d.image().Backup()
		if damaged := w.Offset >= d.Size/2; primary.Valid != damaged || backup.Valid == damaged {
			t.Fatalf("byte %d is damaged: primary valid %v, backup valid %v", at, primary.Valid, backup.Valid)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		d := newDisk(3<<20, 512)
		d.write(d.Writes(anyPartition(d.Geometry, t))...)
		for range 10 {
			copy(d.bytes[rapid.IntRange(0, 2048).Draw(t, "at"):], rapid.SliceOfN(rapid.Byte(), 1, 16).Draw(t, "bytes"))
		}
		i := d.image()
		i.Head = i.Head[:rapid.IntRange(0, len(i.Head)).Draw(t, "head")]
		i.Primary()
		i.Backup()
	})
}
