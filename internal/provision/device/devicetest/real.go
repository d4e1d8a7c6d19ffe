//go:build platform

package devicetest

import (
	"errors"
	"path/filepath"
	"testing"

	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/kernel"
)

// Clear makes a disk of this machine empty, whatever it holds, and forgets its partitions.
func Clear(t testing.TB, path string) {
	t.Helper()
	overwrite(t, path, func(h device.Holder, size int64) error { return h.Overwrite(0, size) })
}

// ClearEnds is Clear for a disk of which only so many bytes at its beginning and its end are
// not empty.
func ClearEnds(t testing.TB, path string, length int64) {
	t.Helper()
	overwrite(t, path, func(h device.Holder, size int64) error {
		return errors.Join(h.Overwrite(0, length), h.Overwrite(size-length, length))
	})
}

func overwrite(t testing.TB, path string, empty func(h device.Holder, size int64) error) {
	t.Helper()
	name := filepath.Base(path)
	holder, err := kernel.Disks{}.Hold(name)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	found, ok := kernel.Disks{}.Find(name)
	if !ok {
		t.Fatalf("%s is not there", path)
	}
	for _, p := range found.Partitions {
		if err := holder.RemovePartition(p.Number); err != nil {
			t.Fatal(err)
		}
	}
	if err := empty(holder, found.Size); err != nil {
		t.Fatal(err)
	}
}
