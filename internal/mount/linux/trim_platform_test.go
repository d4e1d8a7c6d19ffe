//go:build platform

package linux_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/run"
)

// loop is a loop device over a sparse file, which lets go of what is discarded.
func loop(t *testing.T, m *linux.Mounter, fs string) (v provision.Volume, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "disk")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 512<<20)); err != nil {
		t.Fatal(err)
	}
	c := run.Command{Operation: "losetup", Program: "losetup", Args: []string{"--find", "--show", file}}
	made, err := (run.Exec{}).Change(c)
	if err != nil {
		t.Fatal(err)
	}
	device := string(bytes.TrimSpace(made))
	t.Cleanup(func() {
		c.Args = []string{"--detach", device}
		if _, err := (run.Exec{}).Change(c); err != nil {
			t.Error(err)
		}
	})
	number, err := blockdev.Number(device)
	if err != nil {
		t.Fatal(err)
	}
	v = provision.Volume{ID: "pvc-1", Size: 512 << 20, Content: provision.Content{Source: device}}
	if v.Content.Identity, err = blockdev.IdentityOf(number); err != nil {
		t.Fatal(err)
	}
	if err := m.Mkfs(t.Context(), v, fs, ""); err != nil {
		t.Fatal(err)
	}
	return v, file
}

// allocated is how many bytes a sparse file has.
func allocated(t *testing.T, file string) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * blockdev.Sector
}

func mounted(t *testing.T, fs string) (m *linux.Mounter, r mount.TrimRequest, file string) {
	t.Helper()
	m, err := linux.New(linux.Config{Runner: run.Exec{}})
	if err != nil {
		t.Fatal(err)
	}
	v, file := loop(t, m, fs)
	r = mount.TrimRequest{Content: v.Content, Target: filepath.Join(t.TempDir(), "at"), Length: 128 << 20}
	if err := m.Mount(t.Context(), request(v, fs, r.Target)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(r.Target, 0) }) // in case the test fails before it unmounts
	return m, r, file
}

func TestATrimGivesBackWhatWasDeletedAndNothingElse(t *testing.T) {
	for _, fs := range []string{provision.Ext4, provision.XFS} {
		t.Run(fs, func(t *testing.T) {
			m, r, file := mounted(t, fs)
			kept, deleted := bytes.Repeat([]byte{0x5a}, 16<<20), bytes.Repeat([]byte{0xa5}, 128<<20)
			if err := errors.Join(os.WriteFile(r.Target+"/kept", kept, 0o600), os.WriteFile(r.Target+"/deleted", deleted, 0o600)); err != nil {
				t.Fatal(err)
			}
			unix.Sync()
			full := allocated(t, file)
			if err := os.Remove(r.Target + "/deleted"); err != nil {
				t.Fatal(err)
			}
			unix.Sync()
			discarded := int64(0)
			for ended := false; !ended; ended = r.Start == 0 {
				got, err := m.Trim(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				discarded, r.Start = discarded+got.Bytes, got.Next
			}
			unix.Sync()
			if left := allocated(t, file); left > full-int64(len(deleted)) || left < int64(len(kept)) {
				t.Errorf("the disk has %d bytes after the trim, and had %d before", left, full)
			}
			if discarded < int64(len(deleted)) {
				t.Errorf("discarded are %d bytes", discarded)
			}
			if err := m.Unmount(t.Context(), r.Target); err != nil {
				t.Fatal(err)
			}
			v := provision.Volume{Content: r.Content}
			if err := m.Mount(t.Context(), request(v, fs, r.Target)); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(r.Target + "/kept"); err != nil || !bytes.Equal(got, kept) {
				t.Errorf("what was kept has %d bytes, or others: %v", len(got), err)
			}
			if err := m.Unmount(t.Context(), r.Target); err != nil {
				t.Error(err)
			}
		})
	}
}

// A part behind the end of a filesystem that is smaller than its device ends the trim.
func TestATrimBehindTheEndOfAFilesystemEndsIt(t *testing.T) {
	for _, fs := range []string{provision.Ext4, provision.XFS} {
		m, r, _ := mounted(t, fs)
		r.Start = 1 << 40
		if got, err := m.Trim(t.Context(), r); err != nil || got.Next != 0 || got.Bytes != 0 {
			t.Errorf("%s: %+v, %v", fs, got, err)
		}
		if err := m.Unmount(t.Context(), r.Target); err != nil {
			t.Error(err)
		}
	}
}

// A trim keeps the mount busy. An unmount that comes meanwhile waits for the part, and none that comes between
// two parts is held up.
func TestAFilesystemIsUnmountedWhileItIsTrimmed(t *testing.T) {
	m, r, _ := mounted(t, provision.Ext4)
	v := provision.Volume{Content: r.Content}
	for round := range 20 {
		began, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := m.Trim(t.Context(), r)
			close(began)
			for err == nil {
				_, err = m.Trim(t.Context(), r)
			}
			ended <- err
		}()
		<-began
		if err := m.Unmount(t.Context(), r.Target); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := <-ended; !errors.Is(err, mount.ErrNotMounted) {
			t.Fatalf("round %d: the trim ended with %v", round, err)
		}
		if err := m.Mount(t.Context(), request(v, provision.Ext4, r.Target)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Unmount(t.Context(), r.Target); err != nil {
		t.Error(err)
	}
}
