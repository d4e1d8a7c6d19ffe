package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// disk builds the beginning of a physical volume.
type disk struct {
	labelSector int
	textAt      int
	flags       uint32
	seqno       uint64
}

const (
	testAreaAt   = 4096
	testAreaSize = 8192
)

func (d disk) bytes() []byte {
	b := make([]byte, testAreaAt+testAreaSize)
	le := binary.LittleEndian
	label := b[d.labelSector*sector:]
	copy(label, labelMagic)
	le.PutUint32(label[labelOffsetAt:], 32)
	copy(label[labelTypeAt:], labelType)
	lists := label[32+uuidAndSize:]
	le.PutUint64(lists, 1<<20) // one data area, then the end of the list
	le.PutUint64(lists[32:], testAreaAt)
	le.PutUint64(lists[40:], testAreaSize)

	text := fmt.Appendf(nil, "vg-a {\nid = \"xNYkQq-0000\"\nseqno = %d\nformat = \"lvm2\"\nstatus = [\"RESIZEABLE\"]\n}\n", d.seqno)
	header := b[testAreaAt:]
	copy(header[areaMagicAt:], areaMagic)
	le.PutUint64(header[slotAt:], uint64(d.textAt))
	le.PutUint64(header[slotAt+8:], uint64(len(text)))
	le.PutUint32(header[slotAt+20:], d.flags)
	for i, c := range text {
		at := d.textAt + i
		if at >= testAreaSize {
			at = at - testAreaSize + sector
		}
		b[testAreaAt+at] = c
	}
	return b
}

func TestSequenceIsReadWhereverTheTextIsInTheRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := disk{
			labelSector: rapid.IntRange(0, 3).Draw(t, "label"),
			textAt:      rapid.IntRange(sector, testAreaSize-1).Draw(t, "text"),
			seqno:       rapid.Uint64Range(1, 1<<40).Draw(t, "seqno"),
		}
		got, err := readSequence(bytes.NewReader(d.bytes()))
		if err != nil || got != d.seqno {
			t.Fatalf("read %d, %v; want %d", got, err, d.seqno)
		}
	})
}

func TestDeviceWithoutMetadataSaysSo(t *testing.T) {
	good := disk{labelSector: 1, textAt: 512, seqno: 7}
	for name, b := range map[string][]byte{
		"an empty disk":                    make([]byte, 1<<16),
		"an area that is ignored":          disk{labelSector: 1, textAt: 512, flags: slotIgnored}.bytes(),
		"an area never written":            disk{labelSector: 1}.bytes(),
		"an unknown kind of label":         bytes.Replace(good.bytes(), []byte(labelType), []byte("LVM3 001"), 1),
		"a missing header":                 bytes.Replace(good.bytes(), []byte(areaMagic), make([]byte, len(areaMagic)), 1),
		"a text without a sequence number": bytes.Replace(good.bytes(), []byte("seqno"), []byte("xxxxx"), 1),
	} {
		t.Run(name, func(t *testing.T) {
			if n, err := readSequence(bytes.NewReader(b)); !errors.Is(err, errNoMetadata) {
				t.Errorf("read %d, %v", n, err)
			}
		})
	}
	if _, err := readSequence(bytes.NewReader(nil)); err == nil {
		t.Error("a device of no size has a sequence number")
	}
}

func TestGarbageNeverCrashesTheReader(t *testing.T) {
	good := disk{labelSector: 1, textAt: 600, seqno: 7}.bytes()
	rapid.Check(t, func(t *rapid.T) {
		b := bytes.Clone(good)
		for range rapid.IntRange(1, 20).Draw(t, "flips") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		_, _ = readSequence(bytes.NewReader(b[:rapid.IntRange(0, len(b)).Draw(t, "length")]))
	})
}
