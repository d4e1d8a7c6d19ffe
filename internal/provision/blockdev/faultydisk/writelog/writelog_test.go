package writelog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const sector = 512

// logged is the log of some entries, as the kernel writes it.
func logged(entries ...Entry) []byte {
	le := binary.LittleEndian
	log := make([]byte, sector)
	le.PutUint64(log, magic)
	le.PutUint64(log[8:], version)
	le.PutUint64(log[16:], uint64(len(entries)))
	le.PutUint32(log[24:], sector)
	for _, e := range entries {
		head := make([]byte, sector)
		le.PutUint64(head, uint64(e.Offset/sector)) //nolint:gosec // not negative
		switch {
		case e.Mark != "":
			le.PutUint64(head[16:], flagMark)
			le.PutUint64(head[24:], uint64(len(e.Mark)))
			copy(head[entryHead:], e.Mark)
		case e.Discarded > 0:
			le.PutUint64(head[8:], uint64(e.Discarded/sector))
			le.PutUint64(head[16:], flagDiscard)
		default:
			le.PutUint64(head[8:], uint64(len(e.Data)/sector))
			le.PutUint64(head[24:], uint64(len(e.Data)))
		}
		log = append(append(log, head...), e.Data...)
	}
	return log
}

func filled(with byte, sectors int) []byte { return bytes.Repeat([]byte{with}, sectors*sector) }

func TestALogIsReadAsItWasWritten(t *testing.T) {
	want := []Entry{
		{Offset: 0, Data: filled(1, 3)},
		{Offset: 8 * sector, Data: []byte{}}, // a flush
		{Mark: "made"},
		{Offset: sector, Discarded: sector},
		{Offset: 2 * sector, Data: filled(2, 1)},
		{Mark: "dm-log-writes-end"},
	}
	got, err := Read(bytes.NewReader(logged(want...)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	image := make([]byte, 4*sector)
	for i, e := range got {
		if e.Writes() != (i == 0 || i == 3 || i == 4) {
			t.Errorf("entry %d writes: %v", i, e.Writes())
		}
		if err := e.Apply(image); e.Writes() && err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(append(append(filled(1, 1), filled(0, 1)...), append(filled(2, 1), filled(0, 1)...)...), image); diff != "" {
		t.Errorf("the image differs:\n%s", diff)
	}
}

func TestAnInvalidLogIsAnError(t *testing.T) {
	good := logged(Entry{Offset: 0, Data: filled(1, 2)}, Entry{Mark: "end"})
	for name, log := range map[string][]byte{
		"an empty log":                nil,
		"an empty disk":               make([]byte, 4096),
		"a log cut short":             good[:2*sector],
		"data cut short":              good[:3*sector],
		"a log of an unknown version": append(append(append([]byte{}, good[:8]...), 2), good[9:]...),
		"a mark too long":             logged(Entry{Mark: string(filled('x', 1))}),
	} {
		if entries, err := Read(bytes.NewReader(log)); err == nil {
			t.Errorf("%s is read as %v", name, entries)
		}
	}
}

func TestAWriteBeyondTheDeviceIsRefused(t *testing.T) {
	for _, e := range []Entry{{Offset: sector, Data: filled(1, 1)}, {Offset: 0, Discarded: 2 * sector}, {Offset: -sector, Data: filled(1, 1)}} {
		image := make([]byte, sector)
		if err := e.Apply(image); !errors.Is(err, ErrFormat) {
			t.Errorf("a write at %d: %v", e.Offset, err)
		}
		if !bytes.Equal(image, make([]byte, sector)) {
			t.Error("a part of it was applied")
		}
	}
}

func TestGarbageNeverCrashesTheReader(t *testing.T) {
	good := logged(Entry{Offset: 0, Data: filled(1, 2)}, Entry{Offset: sector, Discarded: sector}, Entry{Mark: "end"})
	rapid.Check(t, func(t *rapid.T) {
		log := bytes.Clone(good)
		for range rapid.IntRange(1, 20).Draw(t, "flips") {
			log[rapid.IntRange(0, len(log)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		entries, _ := Read(bytes.NewReader(log[:rapid.IntRange(0, len(log)).Draw(t, "length")]))
		for _, e := range entries {
			_ = e.Apply(make([]byte, 4*sector))
		}
	})
}
