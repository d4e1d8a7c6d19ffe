//go:build platform

package kernel

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
)

// discarded returns a function that discards a range, or overwrites it if the disk at hand
// cannot discard.
func discarded(f *file) func(offset, length int64) error {
	return func(offset, length int64) error {
		err := f.Discard(offset, length)
		if errors.Is(err, errors.ErrUnsupported) {
			return f.Overwrite(offset, length)
		}
		return err
	}
}

// Both ways of making a range zeros are tried, whichever Berth would use on the disk at hand.
func TestARangeOfARealDiskBecomesZeros(t *testing.T) {
	f, err := Disks{}.open(filepath.Base(blockdevtest.Disks(t, 1)[0]), os.O_RDWR|os.O_EXCL)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const block, at, length = 4096, 8 << 20, 64 << 20
	for name, zero := range map[string]func(offset, length int64) error{"overwritten": f.Overwrite, "discarded": discarded(f)} {
		written := []int64{at - block, at, at + length/2, at + length - block, at + length}
		for _, offset := range written {
			if _, err := f.WriteAt(bytes.Repeat([]byte("x"), block), offset); err != nil {
				t.Fatal(err)
			}
		}
		if err := zero(at, length); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, offset := range written {
			b := make([]byte, block)
			if _, err := f.ReadAt(b, offset); err != nil {
				t.Fatal(err)
			}
			outside := offset < at || offset >= at+length
			if cleared := bytes.Equal(b, make([]byte, block)); cleared == outside {
				t.Errorf("%s from %d to %d: the block at %d is zeros: %v", name, at, at+length, offset, cleared)
			}
		}
	}
	if err := f.Overwrite(0, 128<<20); err != nil { // leave it empty
		t.Fatal(err)
	}
}
