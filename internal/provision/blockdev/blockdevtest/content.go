package blockdevtest

import (
	"os"
	"testing"

	"berth.dev/berth/internal/provision/blockdev"
)

// WriteAt puts a text anywhere on a device, as others would.
func WriteAt(t testing.TB, device, text string, offset int64) {
	t.Helper()
	f, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(text), offset); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

// ReadAt returns so many bytes of a device, past the page cache.
func ReadAt(t testing.TB, device string, bytes int, offset int64) string {
	t.Helper()
	f, err := blockdev.Open(device, os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, bytes)
	if _, err := f.ReadAt(b, offset); err != nil {
		t.Fatal(err)
	}
	return string(b)
}
