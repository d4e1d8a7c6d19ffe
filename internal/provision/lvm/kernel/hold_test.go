package kernel

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/internal/provision/blockdev"
)

func TestWrittenDataIsReadWholeOrIsAnError(t *testing.T) {
	content := blockdev.Buffer(3 * alignment)
	for i := range content {
		content[i] = byte(i % 251)
	}
	disk, err := os.OpenFile(filepath.Join(t.TempDir(), "disk"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	f := file{blockdev.File{Aligned: blockdev.Aligned(disk.Fd())}}
	if n, err := f.WriteAt(content, alignment); n != len(content) || err != nil {
		t.Fatalf("wrote %d bytes: %v", n, err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"blocks": blockdev.Buffer(len(content)), "a part of them": make([]byte, 100)} {
		if n, err := f.ReadAt(b, alignment); n != len(b) || err != nil || !bytes.Equal(b, content[:len(b)]) {
			t.Errorf("%s: read %d bytes: %v", name, n, err)
		}
	}
	for name, at := range map[string]int64{"past the end": 4 * alignment, "up to the end and on": 3 * alignment} {
		if n, err := f.ReadAt(blockdev.Buffer(2*alignment), at); err == nil {
			t.Errorf("%s: read %d bytes", name, n)
		}
	}
	if _, err := (file{blockdev.File{Aligned: -1}}).WriteAt(content, 0); err == nil {
		t.Error("wrote to nothing")
	}
}
