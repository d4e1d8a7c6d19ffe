//go:build platform

package linux_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/run"
)

func TestNothingCanBeWrittenToACoveredPathUntilItIsUnmounted(t *testing.T) {
	at := filepath.Join(t.TempDir(), "pods/uid/volumes/kubernetes.io~csi/pvc/mount")
	if err := errors.Join(os.MkdirAll(at, 0o755), linux.Cover(at)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(at, 0) })
	initialises := func() error { return os.WriteFile(filepath.Join(at, "PG_VERSION"), []byte("18"), 0o600) }
	if err := initialises(); !errors.Is(err, unix.EROFS) {
		t.Errorf("a database begins anew where the volume was: %v", err)
	}
	m, err := linux.New(linux.Config{Runner: run.Exec{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Unmount(t.Context(), at); err != nil {
		t.Error(err)
	}
	if err := initialises(); err != nil {
		t.Errorf("the cover is still there: %v", err)
	}
}

func TestOnlyPathsOfPodsAreCovered(t *testing.T) {
	at := t.TempDir()
	if err := linux.Cover(at); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(at, "file"), nil, 0o600); err != nil {
		t.Errorf("a directory that is no pod's is covered: %v", err)
	}
	if err := linux.Cover(filepath.Join(at, "volumes/kubernetes.io~csi/gone")); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a path that is not there is covered: %v", err)
	}
}
