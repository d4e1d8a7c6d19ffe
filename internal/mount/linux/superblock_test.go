package linux

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/internal/mount"
)

func ext4Device(state uint16, incompatible uint32, blocks uint64) []byte {
	b := make([]byte, 4096)
	le := binary.LittleEndian
	s := b[ext4At:]
	le.PutUint16(s[0x38:], ext4Magic)
	le.PutUint16(s[0x3A:], state)
	le.PutUint32(s[0x60:], incompatible)
	le.PutUint32(s[0x4:], uint32(blocks)) //nolint:gosec // the low half
	le.PutUint32(s[0x150:], uint32(blocks>>32))
	le.PutUint32(s[0x18:], 2) // blocks of 4096 bytes
	return b
}

func xfsDevice(blocks uint64) []byte {
	b := make([]byte, 4096)
	be := binary.BigEndian
	copy(b, xfsMagic)
	be.PutUint32(b[4:], 4096)
	be.PutUint64(b[8:], blocks)
	be.PutUint64(b[0x30:], 77)
	be.PutUint32(b[0x60:], 2560)
	return b
}

func TestSuperblocksAreRead(t *testing.T) {
	for name, tc := range map[string]struct {
		device []byte
		fs     string
		want   superblock
	}{
		"a clean ext4":              {ext4Device(1, 0x40, 1000), "ext4", superblock{"ext4", 4096000, true, 0}},
		"a large ext4":              {ext4Device(1, 0x80, 1<<33), "ext4", superblock{"ext4", 1 << 45, true, 0}},
		"ext4 with a journal":       {ext4Device(1, ext4Recover, 10), "ext4", superblock{"ext4", 40960, false, 0}},
		"ext4 with recorded errors": {ext4Device(3, 0, 10), "ext4", superblock{"ext4", 40960, false, 0}},
		"ext4 never unmounted":      {ext4Device(0, 0, 10), "ext4", superblock{"ext4", 40960, false, 0}},
		"xfs with an internal log":  {xfsDevice(100000), "xfs", superblock{"xfs", 409600000, true, 2560 * 4096}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readSuperblock(bytes.NewReader(tc.device), tc.fs)
			if err != nil || got != tc.want {
				t.Errorf("read %+v, %v; want %+v", got, err, tc.want)
			}
		})
	}
}

func TestADeviceWithoutItsRecordedFilesystemIsDamaged(t *testing.T) {
	for name, tc := range map[string]struct {
		device []byte
		fs     string
	}{
		"a blank device":         {make([]byte, 4096), "ext4"},
		"xfs for ext4":           {xfsDevice(10), "ext4"},
		"ext4 for xfs":           {ext4Device(1, 0, 10), "xfs"},
		"a device that is short": {make([]byte, 100), "xfs"},
		"an unknown filesystem":  {xfsDevice(10), "vfat"},
		"an absurd block size":   {bytes.Replace(xfsDevice(10), []byte{0, 0, 0x10, 0}, []byte{0xFF, 0, 0, 0}, 1), "xfs"},
	} {
		if _, err := readSuperblock(bytes.NewReader(tc.device), tc.fs); !errors.Is(err, mount.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
}

type unreadable struct{}

func (unreadable) ReadAt([]byte, int64) (int, error) { return 0, errors.New("input/output error") }

func TestDeviceThatCannotBeReadIsNotCalledDamaged(t *testing.T) {
	_, err := readSuperblock(io.ReaderAt(unreadable{}), "ext4")
	if err == nil || errors.Is(err, mount.ErrCorrupt) {
		t.Errorf("got %v, want an error that leaves the question open", err)
	}
}

func TestGarbageNeverCrashesTheParsers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SampledFrom([][]byte{ext4Device(1, 0x80, 1<<40), xfsDevice(1 << 40)}).Draw(t, "device")
		for range rapid.IntRange(1, 50).Draw(t, "flips") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		for _, fs := range []string{"ext4", "xfs"} {
			if s, err := readSuperblock(bytes.NewReader(b), fs); err == nil && s.size < 0 {
				t.Fatalf("a size of %d", s.size)
			}
		}
	})
}
