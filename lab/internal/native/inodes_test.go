package native

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAFileIsKnownUnderEveryName(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	inside := filepath.Join(dir, "deep", "disk1.raw")
	if err := os.MkdirAll(filepath.Dir(inside), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := makeDisk(inside, 1<<20); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(elsewhere, "name")
	if err := os.Link(inside, other); err != nil {
		t.Fatal(err)
	}
	if err := makeDisk(filepath.Join(elsewhere, "stranger"), 1<<20); err != nil {
		t.Fatal(err)
	}
	found, err := inodes(dir)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{other: true, filepath.Join(elsewhere, "stranger"): false} {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		if found[inode{st.Dev, st.Ino}] != want {
			t.Errorf("%s is known: %v, want %v", filepath.Base(path), !want, want)
		}
	}
	if none, err := inodes(filepath.Join(dir, "missing")); err != nil || len(none) != 0 {
		t.Errorf("a directory that is gone has %v, %v", none, err)
	}
}
