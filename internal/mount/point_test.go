package mount_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

func TestMountPointsAreMadeAndKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	file := filepath.Join(t.TempDir(), "c", "d")
	for range 2 {
		if err := mount.MakeDirectory(dir); err != nil {
			t.Error(err)
		}
		if err := mount.MakeFile(file); err != nil {
			t.Error(err)
		}
	}
	if err := mount.MakeDirectory(file); err == nil {
		t.Error("a file passed for a directory")
	}
	if err := mount.MakeFile(dir); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("a directory for a file: %v", err)
	}
}

func TestLinkIsNoMountPoint(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := mount.MakeDirectory(link); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("a link as directory: %v", err)
	}
	if err := mount.MakeFile(link); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("a link as file: %v", err)
	}
}

func TestAMountPointIsRemovedOnlyIfNothingIsInIt(t *testing.T) {
	point := filepath.Join(t.TempDir(), "point")
	if err := mount.MakeDirectory(point); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(point, "file")
	if err := mount.MakeFile(inside); err != nil {
		t.Fatal(err)
	}
	if err := mount.RemovePoint(point); err == nil {
		t.Error("removed with what is in it")
	}
	for _, path := range []string{inside, point, point} { // the last is gone already
		if err := mount.RemovePoint(path); err != nil {
			t.Error(err)
		}
	}
}
