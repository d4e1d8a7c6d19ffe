package device

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/device/gpt"
)

// drive is a disk in memory: zeros, and the writes over them, in turn.
type drive struct {
	gpt.Geometry
	written []gpt.Write
}

func newDrive(size, block int64) drive {
	return drive{Geometry: gpt.Geometry{Size: size, Block: block}}
}

func (d drive) ReadAt(b []byte, offset int64) (int, error) {
	clear(b)
	for _, w := range d.written {
		if from := w.Offset - offset; from >= 0 && from < int64(len(b)) {
			copy(b[from:], w.Data)
		} else if from < 0 && -from < int64(len(w.Data)) {
			copy(b, w.Data[-from:])
		}
	}
	return len(b), nil
}

func (d drive) look() content {
	c, _ := look(d, d.Geometry)
	return c
}

// after returns a copy of the drive to which writes were made.
func (d drive) after(writes []gpt.Write) drive {
	d.written = slices.Clone(d.written)
	for _, w := range writes {
		d.written = slices.DeleteFunc(d.written, func(old gpt.Write) bool { return old.Offset == w.Offset })
		d.written = append(d.written, w)
	}
	return d
}

func (d drive) recordOf(id string, s status) record {
	r := record{id: id, status: s, guid: gpt.Random([16]byte{1, 2, 3})}
	r.first, r.last = d.Whole()
	return r
}

const claimID = "pvc-0b0e6f2e-8a4e-4f57-9a53-8b6f3f1f9a10"

// The test makes every write of every change, from every state that any crash can leave, and
// from every state that a crash then can leave, and so on. After each write the disk bears its
// old content or the new one, and once it bears the new one it keeps it.
func TestEveryCrashLeavesAKnownTable(t *testing.T) {
	for _, block := range []int64{512, 4096} {
		d := newDrive(8<<20+block*3, block)
		seen, due := map[string]bool{}, []drive{d}
		for len(due) > 0 {
			from := due[0]
			due = due[1:]
			c := from.look()
			for _, to := range next(d, c) {
				writes, turned := c.writes(d.Geometry, to), false
				for done := range len(writes) + 1 {
					at := from.after(writes[:done])
					now := at.look()
					turned = turned || is(now, to)
					if !is(now, to) && (turned || !same(now, c)) {
						t.Fatalf("from %+v to %+v: after write %d of %d the disk bears %+v", c, to, done, len(writes), now)
					}
					if key := at.key(); !seen[key] {
						seen[key] = true
						due = append(due, at)
					}
				}
				if !turned {
					t.Fatalf("from %+v the disk never becomes %+v", c, to)
				}
			}
		}
		if len(seen) < 25 {
			t.Errorf("only %d states were seen", len(seen))
		}
	}
}

// next returns the records that a disk may be brought to; nil stands for no record.
func next(d drive, c content) []*record {
	if c.kind == empty {
		return []*record{new(d.recordOf(claimID, blank))}
	}
	as := func(s status) *record { return new(d.recordOf(claimID, s)) }
	switch c.record.status {
	case blank:
		return []*record{as(blank), as(ext4), as(xfs), as(wiping)}
	case wiping:
		next := []*record{nil}
		for _, parts := range []int64{0, 1, wipedParts - 1} {
			if r := as(wiping); parts >= c.record.wiped {
				r.wiped = parts
				next = append(next, r)
			}
		}
		return next
	default:
		return []*record{as(c.record.status), as(wiping)}
	}
}

func is(c content, r *record) bool {
	if r == nil {
		return c.kind == empty
	}
	return c.kind == ours && c.record == *r && c.problem == ""
}

func same(a, b content) bool {
	return a.kind == b.kind && a.record == b.record && a.problem == b.problem
}

// key returns a text that is different for different states of a disk.
func (d drive) key() string {
	byPlace := map[int64]string{}
	for _, w := range d.written {
		if !blockdev.Zeros(w.Data) {
			byPlace[w.Offset] = string(w.Data)
		}
	}
	return fmt.Sprint(byPlace)
}

func TestACompleteTableIsToldFromOneThatIsNot(t *testing.T) {
	d := newDrive(8<<20, 512)
	writes := d.Writes(d.recordOf(claimID, blank).partition())
	for done := 1; done <= len(writes); done++ {
		if c := d.after(writes[:done]).look(); c.complete != (done == len(writes)) {
			t.Errorf("after write %d of %d the table counts as complete: %v", done, len(writes), c.complete)
		}
	}
}

func TestAVolumeStaysOnADiskThatGrows(t *testing.T) {
	d := newDrive(8<<20, 512)
	r := d.recordOf(claimID, ext4)
	small := d.after(d.Writes(r.partition()))
	grown := newDrive(12<<20, 512)
	grown.written = small.written
	if c := grown.look(); c.kind != ours || c.record != r || c.problem != "" || c.complete {
		t.Errorf("the grown disk bears %+v, want %+v with its backup to be written", c, r)
	}
}

func TestATableThatOthersChangedIsAVolumeWithAProblem(t *testing.T) {
	d := newDrive(8<<20, 512)
	r := d.recordOf(claimID, ext4)
	table := d.after(d.Writes(r.partition()))
	other := d.recordOf("pvc-other", blank)
	other.guid = gpt.Random([16]byte{9})
	theirs := gpt.Partition{Type: gpt.GUID{1}, ID: gpt.GUID{2}, First: 2048, Last: 4000, Name: "theirs"}
	for name, tc := range map[string]drive{
		"another volume in the primary table": table.after(d.Writes(other.partition())[2:]),
		"a foreign table as the primary":      table.after(d.Writes(theirs)[2:]),
		"a foreign table as the backup":       table.after(d.Writes(theirs)[:2]),
		"two filesystems":                     table.after(d.Writes(d.recordOf(claimID, xfs).partition())[2:]),
		"a second partition":                  table.after(second(d.Writes(r.partition()))),
	} {
		if c := tc.look(); c.kind != ours || c.problem == "" {
			t.Errorf("%s: %+v, want a volume with a problem", name, c)
		}
	}
}

// second adds another partition to the writes of a table.
func second(writes []gpt.Write) []gpt.Write {
	array := make([]byte, 128*128)
	copy(array, writes[0].Data)
	copy(array[128:], "a type of theirs")
	le := binary.LittleEndian
	for _, header := range []int{1, 4} {
		b := writes[header].Data[:92]
		le.PutUint32(b[88:], crc32.ChecksumIEEE(array))
		le.PutUint32(b[16:], 0)
		le.PutUint32(b[16:], crc32.ChecksumIEEE(b))
	}
	for _, entries := range []int{0, 2} {
		copy(writes[entries].Data[128:], "a type of theirs")
	}
	return writes
}

func TestAnythingElseIsForeign(t *testing.T) {
	d := newDrive(8<<20, 512)
	theirs := gpt.Partition{Type: gpt.GUID{1}, ID: gpt.GUID{2}, First: 2048, Last: 4000, Name: "theirs"}
	writes := d.Writes(d.recordOf(claimID, blank).partition())
	outside := d.recordOf(claimID, blank)
	outside.last = d.Size / 512
	strange := d.recordOf("not-a-volume", blank)
	foreigners := map[string]drive{
		"a foreign table":                          d.after(d.Writes(theirs)),
		"a foreign primary table without a backup": d.after(d.Writes(theirs)[2:]),
		"a volume that does not fit":               d.after(d.Writes(outside.partition())),
		"a misnamed partition of Berth's type":     d.after(d.Writes(strange.partition())),
		"an entry and a foreign byte":              d.after(append(writes[:1:1], gpt.Write{Offset: 100, Data: []byte("x")})),
		"a boot record alone":                      d.after(writes[3:4]),
		"a header alone":                           d.after(writes[4:]),
	}
	for _, at := range []int64{0, 511, 1 << 20, 2<<20 - 1, 7 << 20, 8<<20 - 1} {
		foreigners[fmt.Sprintf("a byte at %d", at)] = d.after([]gpt.Write{{Offset: at, Data: []byte{1}}})
	}
	for name, tc := range foreigners {
		if c := tc.look(); c.kind != foreign || c.what == "" {
			t.Errorf("%s: %+v, want a foreign disk", name, c)
		}
	}
}

// Random bytes never make a volume of a disk, and never crash the reader.
func TestGarbageIsNeverAVolume(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDrive(8<<20, 512)
		for range 5 {
			at := rapid.SampledFrom([]int64{0, 512, 1024, d.Size - 512, d.Size - 33*512}).Draw(t, "block")
			garbage := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "bytes")
			d.written = append(d.written, gpt.Write{Offset: at, Data: []byte("EFI PART")},
				gpt.Write{Offset: at + rapid.Int64Range(0, 100).Draw(t, "at"), Data: garbage})
		}
		if c := d.look(); c.kind == ours {
			t.Fatalf("garbage is %+v", c)
		}
	})
}

func TestIDsAreKeptInAPartitionsName(t *testing.T) {
	for name, tc := range map[string]struct {
		id, partition string
		fits          bool
	}{
		"a claim's volume":              {claimID, "pvc-0b0e6f2e8a4e4f579a538b6f3f1f9a10", true},
		"a hashed name":                 {"vol-" + strings.Repeat("a2", 16), "vol-" + strings.Repeat("a2", 16), true},
		"an id in the shortened form":   {"pvc-0b0e6f2e8a4e4f579a538b6f3f1f9a10", "pvc-0b0e6f2e8a4e4f579a538b6f3f1f9a10", true},
		"a short name":                  {"pvc-conformance-1", "pvc-conformance-1", true},
		"a long name that is no UUID":   {"pvc-" + strings.Repeat("a", 40), "", false},
		"a UUID and more":               {claimID + "-1", "", false},
		"an inline volume's long name":  {"inline-" + strings.Repeat("a", 40), "", false},
		"a UUID with a wrong character": {"pvc-0b0e6f2e-8a4e-4f57-9a53-8b6f3f1f9a1x", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkName(tc.id); errors.Is(err, provision.ErrInvalid) == tc.fits {
				t.Fatalf("checking %s: %v", tc.id, err)
			}
			if !tc.fits {
				return
			}
			partition, attributes := encodeName(tc.id)
			if partition != tc.partition {
				t.Errorf("kept as %q, want %q", partition, tc.partition)
			}
			if id, ok := decodeName(partition, attributes); !ok || id != tc.id {
				t.Errorf("read back as %q, %v", id, ok)
			}
		})
	}
}

func TestNamesOfPoolsAreSafeAndDistinct(t *testing.T) {
	for name, tc := range map[string]struct{ identity, want string }{
		"a world-wide name":      {"naa.5000c500a1b2c3d4", "disk:naa.5000c500a1b2c3d4"},
		"spaces":                 {"t10.ATA     DISK  9   SERIAL ", "disk:t10.ATA_DISK_9_SERIAL"},
		"a blank identity":       {" ", ""},
		"an empty identity":      {"", ""},
		"an option":              {"-rf", "disk:rf"},
		"a path":                 {"../../etc", "disk:.._.._etc"},
		"a letter outside ASCII": {"vendör", "disk:vend_r"},
	} {
		if got := poolName(tc.identity); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	long := strings.Repeat("x", 300)
	if a, b := poolName(long+"a"), poolName(long+"b"); a == b || len(a) > 200 {
		t.Errorf("long identities become %q and %q", a, b)
	}
	rapid.Check(t, func(t *rapid.T) {
		if name := poolName(rapid.String().Draw(t, "identity")); name != "" {
			r := provision.CreateRequest{ID: "pvc-1", Pool: provision.PoolRef{Type: provision.Device, Name: name}, Size: 1}
			if err := r.Check(); err != nil || provision.TypeOf(name) != provision.Device {
				t.Fatalf("%q is no name of a disk: %v", name, err)
			}
		}
	})
}
