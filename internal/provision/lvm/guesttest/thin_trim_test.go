//go:build platform

package guesttest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// trim discards the free blocks of a mounted filesystem, part by part.
func trim(t *testing.T, v provision.Volume, dir string) {
	t.Helper()
	m, err := linux.New(linux.Config{Runner: run.Exec{}})
	if err != nil {
		t.Fatal(err)
	}
	for start, ended := int64(0), false; !ended; ended = start == 0 {
		got, err := m.Trim(t.Context(), mount.TrimRequest{Content: v.Content, Target: dir, Start: start, Length: 32 * mib})
		if err != nil {
			t.Fatalf("trimming: %v", err)
		}
		start = got.Next
	}
}

// written writes a file of so many MiB through to the disk.
func written(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.WriteFile(path, bytes.Repeat([]byte{0xa5}, int(size*mib)), 0o600); err != nil {
		t.Fatal(err)
	}
	unix.Sync()
}

// As docs/trim.md says.
func TestWhatIsDeletedInAVolumeGoesBackToItsThinPoolOnRealLVM(t *testing.T) {
	p, pool := realThin(t, 256)
	for name, tc := range map[string]struct {
		filesystem, options string
		discards            bool // by itself
	}{
		"ext4 with discard": {provision.Ext4, "discard", true}, "ext4 that is trimmed": {provision.Ext4, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			made(t, p, request(pool, "pvc-1", 128))
			v, err := p.Format(t.Context(), provision.FormatRequest{ID: "pvc-1", Filesystem: tc.filesystem})
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := unix.Mount(v.Content.Source, dir, v.Filesystem, 0, tc.options); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "file")
			written(t, file, 64)
			eventually(t, p, pool, func(p provision.Pool) bool { return p.Fill.Data >= 64*mib }, "what was written is not seen in the fill")
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			unix.Sync()
			if !tc.discards {
				trim(t, v, dir)
			}
			eventually(t, p, pool, func(p provision.Pool) bool { return p.Fill.Data < 32*mib }, "the pool did not get the room back")
			if err := unix.Unmount(dir, 0); err != nil {
				t.Fatal(err)
			}
			if err := p.Delete(t.Context(), "pvc-1"); err != nil {
				t.Fatal(err)
			}
		})
	}
}
