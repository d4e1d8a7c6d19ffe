package linux

import (
	"bytes"
	"testing"

	"berth.dev/berth/internal/provision"
)

// A tenant with a raw block device, or root in a pod, writes superblocks.
func FuzzSuperblock(f *testing.F) {
	f.Add(true, ext4Device(1, 0x80, 1<<33))
	f.Add(false, xfsDevice(100000))
	f.Fuzz(func(t *testing.T, isExt4 bool, device []byte) {
		filesystem := provision.XFS
		if isExt4 {
			filesystem = provision.Ext4
		}
		s, err := readSuperblock(bytes.NewReader(device), filesystem)
		if err == nil && (s.size < 0 || s.size > provision.MaxSize || s.log < 0) {
			t.Errorf("%+v", s)
		}
	})
}
