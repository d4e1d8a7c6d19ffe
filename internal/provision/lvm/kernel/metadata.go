package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
)

// On a physical volume a label in one of the first four sectors leads to metadata
// areas. Each begins with a header of one sector that says where in the area, used
// as a ring, the current text of the volume group's metadata is. The text begins
// with the group's name, id and sequence number.
const (
	sector     = 512
	labelSpace = 4 * sector

	labelMagic = "LABELONE"
	labelType  = "LVM2 001"
	// Within the label's sector: where the offset of the label's content and its type are.
	labelOffsetAt = 20
	labelTypeAt   = 24
	// The label's content: uuid and device size, then two lists of (offset, size) pairs
	// that end with zeros: data areas and metadata areas.
	uuidAndSize = 32 + 8

	areaMagic   = " LVM2 x[5A%r0N*>"
	areaMagicAt = 4
	// The first slot of the header: offset, size, checksum and flags of the text.
	slotAt      = 40
	slotIgnored = 1

	// textStart is how many bytes of the text are enough to hold the sequence number.
	textStart = 1024
)

var (
	errNoMetadata = errors.New("no LVM metadata")
	sequenceLine  = regexp.MustCompile(`\n\s*seqno = ([0-9]+)\n`)
)

// readSequence returns the sequence number in the metadata of a physical volume.
func readSequence(device io.ReaderAt) (uint64, error) {
	head := make([]byte, labelSpace)
	if _, err := device.ReadAt(head, 0); err != nil {
		return 0, fmt.Errorf("reading label: %w", err)
	}
	areas, err := metadataAreas(head)
	if err != nil {
		return 0, err
	}
	for _, a := range areas {
		text, err := a.text(device)
		if errors.Is(err, errNoMetadata) {
			continue // an area that is not used, by the administrator's choice
		}
		if err != nil {
			return 0, err
		}
		if m := sequenceLine.FindSubmatch(text); m != nil {
			return strconv.ParseUint(string(m[1]), 10, 64)
		}
	}
	return 0, errNoMetadata
}

type area struct{ offset, size int64 }

// metadataAreas finds the areas by the label.
func metadataAreas(head []byte) ([]area, error) {
	for at := 0; at < len(head); at += sector {
		label := head[at : at+sector]
		if string(label[:len(labelMagic)]) != labelMagic || string(label[labelTypeAt:labelTypeAt+len(labelType)]) != labelType {
			continue
		}
		start := int(binary.LittleEndian.Uint32(label[labelOffsetAt:])) + uuidAndSize
		if start < 0 || start > len(label) {
			return nil, errNoMetadata
		}
		_, rest := areaList(label[start:])
		metadata, _ := areaList(rest)
		return metadata, nil
	}
	return nil, errNoMetadata
}

// areaList reads one list and returns it with the bytes that follow it.
func areaList(b []byte) (areas []area, rest []byte) {
	const pair = 16
	for len(b) >= pair {
		a := area{int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))} //nolint:gosec // negative is refused below
		b = b[pair:]
		if a.offset == 0 {
			return areas, b
		}
		areas = append(areas, a)
	}
	return areas, nil
}

// text returns the beginning of the current metadata text.
func (a area) text(device io.ReaderAt) ([]byte, error) {
	header := make([]byte, sector)
	if a.offset <= 0 || a.size <= sector {
		return nil, errNoMetadata
	}
	if _, err := device.ReadAt(header, a.offset); err != nil {
		return nil, fmt.Errorf("reading metadata header: %w", err)
	}
	if !bytes.Equal(header[areaMagicAt:areaMagicAt+len(areaMagic)], []byte(areaMagic)) {
		return nil, errNoMetadata
	}
	slot := header[slotAt:]
	offset, size := int64(binary.LittleEndian.Uint64(slot)), int64(binary.LittleEndian.Uint64(slot[8:])) //nolint:gosec // checked next
	if flags := binary.LittleEndian.Uint32(slot[20:]); flags&slotIgnored != 0 || offset < sector || offset >= a.size || size <= 0 {
		return nil, errNoMetadata
	}
	text := make([]byte, min(size, textStart, a.size-offset))
	if _, err := device.ReadAt(text, a.offset+offset); err != nil {
		return nil, fmt.Errorf("reading metadata: %w", err)
	}
	if wanted := min(size, textStart); int64(len(text)) < wanted {
		// The text goes on at the beginning of the ring, after the header.
		more := make([]byte, min(wanted-int64(len(text)), a.size-sector))
		if _, err := device.ReadAt(more, a.offset+sector); err != nil {
			return nil, fmt.Errorf("reading metadata: %w", err)
		}
		text = append(text, more...)
	}
	return text, nil
}
