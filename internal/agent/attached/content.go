package attached

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
)

const (
	headSize = 2 << 20
	tailSize = 1 << 20
	// minSize is the smallest disk that bears a filesystem.
	minSize = 8 << 20
	// block is the size of the mark, and what it is aligned to: the largest logical block of any disk.
	block = 4096
)

// content is what is on a disk.
type content struct {
	// filesystem that was made on it; empty if none was, or was not made to its end. uuid is its identity.
	filesystem string
	uuid       uuid
	// foreign names other data, for people; empty if there is none.
	foreign string
	// marked: a filesystem was begun here.
	marked bool
}

// tailAt is where the last part of a disk begins, and the mark is.
func tailAt(size int64) int64 { return (size - tailSize) / block * block }

// look reads the ends of a disk.
func look(r io.ReaderAt, size int64, m mark, known []lineage.Epoch) (content, error) {
	if size < minSize {
		return content{foreign: fmt.Sprintf("only %d bytes, and a filesystem needs %d", size, minSize)}, nil
	}
	head, tail := make([]byte, headSize), make([]byte, size-tailAt(size))
	if _, err := r.ReadAt(head, 0); err != nil {
		return content{}, fmt.Errorf("reading the beginning of the disk: %w", err)
	}
	if _, err := r.ReadAt(tail, tailAt(size)); err != nil {
		return content{}, fmt.Errorf("reading the end of the disk: %w", err)
	}
	return judge(head, tail, m.Volume, known), nil
}

// Stranger says what a disk bears that is not of a volume that began blank, empty if all is: the filesystem that
// was made for the volume, the mark of one of its epochs, or ends that are zeros.
func Stranger(r io.ReaderAt, size int64, volume string, epochs []lineage.Epoch) (string, error) {
	found, err := look(r, size, mark{Volume: volume}, epochs)
	switch {
	case err != nil:
		return "", err
	case found.filesystem != "" && found.uuid != uuidOf(volume):
		return otherwise(found), nil
	}
	return found.foreign, nil
}

// otherwise names a filesystem that was made for another volume.
func otherwise(found content) string {
	return fmt.Sprintf("a filesystem (%s, UUID %s) that was made for another volume", found.filesystem, found.uuid)
}

// The places of the magic numbers of the filesystems that mkfs makes.
const (
	ext4At    = 1080
	ext4Magic = "\x53\xef"
	xfsMagic  = "XFSB"
	ext4UUID  = 1024 + 0x68
	xfsUUID   = 32
)

// judge says what is on a disk by its ends. known are the epochs that a mark may name.
func judge(head, tail []byte, volume string, known []lineage.Epoch) content {
	if m, ok := parseMark(tail); ok && m.Volume == volume && slices.Contains(known, m.Epoch) {
		return content{marked: true}
	}
	ext4, xfs := bytes.HasPrefix(head[ext4At:], []byte(ext4Magic)), bytes.HasPrefix(head, []byte(xfsMagic))
	switch {
	case blockdev.Zeros(head) && blockdev.Zeros(tail):
		return content{}
	case ext4 && !xfs:
		return content{filesystem: provision.Ext4, uuid: uuid(head[ext4UUID : ext4UUID+len(uuid{})])}
	case xfs && !ext4:
		return content{filesystem: provision.XFS, uuid: uuid(head[xfsUUID : xfsUUID+len(uuid{})])}
	}
	return content{foreign: blockdev.Describe(head)}
}

// uuid is the identity of a filesystem.
type uuid [16]byte

// uuidOf is that of the filesystem which is made for a volume: a function of the volume's name, in the form of
// the UUIDs that a program may choose by itself (RFC 9562, version 8).
func uuidOf(volume string) (u uuid) {
	sum := sha256.Sum256([]byte("the filesystem of " + volume))
	copy(u[:], sum[:])
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return u
}

func (u uuid) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// mark says that a filesystem is being made.
type mark struct {
	Volume string        `json:"volume"`
	Epoch  lineage.Epoch `json:"epoch"`
}

const markBegins = "Berth is making a filesystem here\n"

// bytes returns the mark as a block of the disk.
func (m mark) bytes() []byte {
	text, _ := json.Marshal(m) // two strings and a number
	b := make([]byte, block)
	copy(b, append([]byte(markBegins), text...))
	return b
}

func parseMark(b []byte) (m mark, ok bool) {
	text, ok := bytes.CutPrefix(b[:block], []byte(markBegins))
	return m, ok && json.Unmarshal(bytes.TrimRight(text, "\x00"), &m) == nil
}
