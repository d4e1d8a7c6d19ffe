package linux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// superblock has the data that Berth reads of a filesystem without its tools.
type superblock struct {
	filesystem string
	// size of the filesystem in bytes.
	size int64
	// clean says that the filesystem was unmounted cleanly and records no damage.
	clean bool
	// log is the size in bytes of an xfs log inside the filesystem, which statfs
	// does not count.
	log int64
}

// The ext4 superblock is at 1024, little-endian.
const (
	ext4At         = 1024
	ext4Magic      = 0xEF53
	ext4StateClean = 0x1
	ext4StateError = 0x2
	ext4Recover    = 0x4 // incompatible feature: the journal must be replayed
	ext4Bits64     = 0x80
)

// The xfs superblock is at 0, big-endian.
const xfsMagic = "XFSB"

// readSuperblock reads the superblock of the filesystem that a device should have.
// Another one or none is ErrCorrupt. A device that cannot be read is another error: its
// data may be intact.
func readSuperblock(device io.ReaderAt, filesystem string) (superblock, error) {
	b := make([]byte, 4096)
	if _, err := device.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return superblock{}, fmt.Errorf("reading superblock: %w", err)
	}
	var s superblock
	var ok bool
	switch filesystem {
	case provision.Ext4:
		s, ok = parseExt4(b[ext4At:])
	case provision.XFS:
		s, ok = parseXFS(b)
	}
	if !ok {
		return superblock{}, fmt.Errorf("%w: there is no %s superblock on the device", mount.ErrCorrupt, filesystem)
	}
	return s, nil
}

func parseExt4(b []byte) (superblock, bool) {
	le := binary.LittleEndian
	if le.Uint16(b[0x38:]) != ext4Magic {
		return superblock{}, false
	}
	incompatible, state := le.Uint32(b[0x60:]), le.Uint16(b[0x3A:])
	blocks := uint64(le.Uint32(b[0x4:]))
	if incompatible&ext4Bits64 != 0 {
		blocks |= uint64(le.Uint32(b[0x150:])) << 32
	}
	shift := 10 + le.Uint32(b[0x18:])
	if shift > 16 || blocks > provision.MaxSize>>shift {
		return superblock{}, false
	}
	return superblock{
		filesystem: provision.Ext4,
		size:       int64(blocks << shift), //nolint:gosec // bounded above
		clean:      state&ext4StateClean != 0 && state&ext4StateError == 0 && incompatible&ext4Recover == 0,
	}, true
}

func parseXFS(b []byte) (superblock, bool) {
	be := binary.BigEndian
	if string(b[:len(xfsMagic)]) != xfsMagic {
		return superblock{}, false
	}
	blockSize, blocks := int64(be.Uint32(b[4:])), be.Uint64(b[8:])
	if blockSize < 512 || blockSize > 65536 || blocks > uint64(provision.MaxSize/blockSize) { //nolint:gosec // positive
		return superblock{}, false
	}
	s := superblock{filesystem: provision.XFS, size: int64(blocks) * blockSize, clean: true} //nolint:gosec // bounded above
	if logStart := be.Uint64(b[0x30:]); logStart != 0 {
		s.log = int64(be.Uint32(b[0x60:])) * blockSize
	}
	return s, true
}
