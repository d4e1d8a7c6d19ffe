//go:build platform

package agent

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/attached"
	"berth.dev/berth/internal/agent/released"
	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/ordered"
	"berth.dev/berth/internal/provision/shared/simdisk"
	"berth.dev/berth/internal/publish/staging"
	"berth.dev/berth/internal/run"
)

// onLoops makes machinery of this machine: each node has a loop device of one file, and real filesystems.
func onLoops(t *testing.T) func(*scene, string) machinery {
	t.Helper()
	dir := t.TempDir()
	at := filepath.Join(dir, "disk")
	if err := errors.Join(os.Mkdir(at, 0o700), os.WriteFile(filepath.Join(at, "identity"), []byte(diskIdentity), 0o600),
		os.WriteFile(filepath.Join(at, "disk"), nil, 0o600), os.Truncate(filepath.Join(at, "disk"), 512<<20)); err != nil {
		t.Fatal(err)
	}
	mounter, err := linux.New(linux.Config{Runner: run.Exec{}})
	if err != nil {
		t.Fatal(err)
	}
	return func(s *scene, node string) machinery {
		disks := simdisk.In(dir, node)
		t.Cleanup(func() { // whatever a test left
			for _, path := range []string{s.nodes[node].pod(), s.nodes[node].staging()} {
				_ = unix.Unmount(path, 0)
			}
			if err := disks.Detach(context.WithoutCancel(t.Context()), shared.Disk{Volume: s.id, Handle: "sim:///disk", Identity: diskIdentity}); err != nil {
				t.Error(err)
			}
		})
		return machinery{
			SharedDisks: SharedDisks{
				Boot: node + "-boot", Disks: func(ordered.Book) shared.Disks { return shared.Schemes(map[string]shared.Disks{simdisk.Scheme: disks}) },
				Machine: attached.Kernel{}, Mounter: mounter, Mkfs: mounter.MkfsAs, Holding: attached.Holding, Cover: linux.Cover, Eraser: released.Kernel{},
			},
			mounts: staging.KernelMounts, write: write, read: read,
		}
	}
}

// write writes a file of a filesystem, or the first block of a device.
func write(path, text string) error {
	block := make([]byte, 4096)
	copy(block, text)
	f, err := os.OpenFile(in(path), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(block)
	return errors.Join(err, f.Close()) // the unmount, or the flush, brings it to the disk
}

func read(path string) (string, error) {
	f, err := os.Open(in(path))
	if err != nil {
		return "", err
	}
	defer f.Close()
	block := make([]byte, 4096)
	_, err = f.Read(block)
	return string(bytes.TrimRight(block, "\x00")), err
}

func in(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, "file")
	}
	return path
}

func TestARealFilesystemMovesFromNodeToNode(t *testing.T) {
	movesWithItsData(newShared(t, onLoops(t)))
}

func TestARealBlockDeviceMovesFromNodeToNode(t *testing.T) {
	movesWithItsData(newShared(t, onLoops(t), func(v *v1alpha1.Volume) { v.Spec.VolumeMode, v.Spec.FSType = v1alpha1.Block, "" }))
}

func TestAFilesystemThatWasNotUnmountedIsRepairedByTheNextMount(t *testing.T) {
	s := newShared(t, onLoops(t))
	a, b := s.nodes[alpha], s.nodes[beta]
	s.begins(alpha)
	if err := write(a.pod(), "journalled"); err != nil {
		t.Fatal(err)
	}
	// The machine is lost after the journal was written: what the disk has now is what the next owner finds.
	fd, err := unix.Open(a.pod(), unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Syncfs(fd), unix.Close(fd)); err != nil {
		t.Fatal(err)
	}
	s.standsBy()
	a.traffic.cut()
	s.lost, s.wanted = []string{a.name}, []string{beta}
	s.until("staged on beta", b.stages)
	s.until("published on beta", b.publishes)
	if got, err := read(b.pod()); err != nil || got != "journalled" {
		t.Errorf("beta reads %q, %v", got, err)
	}
	s.ends(beta)
}
