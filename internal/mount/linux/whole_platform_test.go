//go:build platform

package linux_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

func tool(t *testing.T, command ...string) {
	t.Helper()
	if _, err := (run.Exec{}).Change(run.Command{Operation: command[0], Program: command[0], Args: command[1:]}); err != nil {
		t.Fatal(err)
	}
}

// TestAWholeCheckFindsWhatAMountDoesNot: a file says that it has five names. ext4's tool mends that by itself, and
// of xfs an administrator has to.
func TestAWholeCheckFindsWhatAMountDoesNot(t *testing.T) {
	for fs, damage := range map[string]func(device string, inode uint64) []string{
		provision.Ext4: func(device string, inode uint64) []string {
			return []string{"debugfs", "-w", "-R", fmt.Sprintf("set_inode_field <%d> links_count 5", inode), device}
		},
		provision.XFS: func(device string, inode uint64) []string {
			return []string{"xfs_db", "-x", "-c", fmt.Sprintf("inode %d", inode), "-c", "write core.nlinkv2 5", device}
		},
	} {
		t.Run(fs, func(t *testing.T) {
			m, err := linux.New(linux.Config{Runner: run.Exec{}})
			if err != nil {
				t.Fatal(err)
			}
			v, _ := loop(t, m, fs)
			target := filepath.Join(t.TempDir(), "a")
			links := func(whole bool, use func(file string)) (n uint64, err error) {
				t.Helper()
				r := request(v, fs, target)
				r.Whole = whole
				if err := m.Mount(t.Context(), r); err != nil {
					return 0, err
				}
				file := filepath.Join(target, "file")
				use(file)
				var st syscall.Stat_t
				err = syscall.Stat(file, &st)
				return uint64(st.Nlink), errors.Join(err, m.Unmount(t.Context(), target)) //nolint:unconvert // of another width elsewhere
			}
			var inode uint64
			if _, err := links(false, func(file string) {
				var st syscall.Stat_t
				if err := errors.Join(os.WriteFile(file, []byte("data"), 0o600), syscall.Stat(file, &st)); err != nil {
					t.Fatal(err)
				}
				inode = st.Ino
			}); err != nil {
				t.Fatal(err)
			}
			look := func(string) {}
			if n, err := links(true, look); err != nil || n != 1 {
				t.Errorf("without damage it has %d names: %v", n, err)
			}
			tool(t, damage(v.Content.Source, inode)...)
			if n, err := links(false, look); err != nil || n != 5 {
				t.Errorf("a mount shows %d names: %v", n, err)
			}
			n, err := links(true, look)
			switch {
			case fs == provision.Ext4 && (err != nil || n != 1):
				t.Errorf("after a whole check it has %d names: %v", n, err)
			case fs == provision.XFS && !errors.Is(err, mount.ErrCorrupt):
				t.Errorf("a whole check finds no damage: %v", err)
			}
		})
	}
}

// shutDown stops a mounted filesystem at once, as a loss of power does. What its journal has stays there.
func shutDown(t *testing.T, target string) {
	t.Helper()
	const goingDown, withLog = 0x8004587d, 1 // of ext4 and of xfs
	f, err := os.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), goingDown, withLog); err != nil {
		t.Fatal(err)
	}
}

func TestAWholeCheckComesAfterTheJournal(t *testing.T) {
	for _, fs := range []string{provision.Ext4, provision.XFS} {
		m, err := linux.New(linux.Config{Runner: run.Exec{}})
		if err != nil {
			t.Fatal(err)
		}
		v, _ := loop(t, m, fs)
		target := filepath.Join(t.TempDir(), "a")
		r := request(v, fs, target)
		if err := m.Mount(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if err := os.WriteFile(filepath.Join(target, fmt.Sprint(i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		shutDown(t, target)
		if err := m.Unmount(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		r.Whole = true
		if err := m.Mount(t.Context(), r); err != nil {
			t.Fatalf("%s: %v", fs, err)
		}
		if files, err := os.ReadDir(target); err != nil || len(files) < 100 {
			t.Errorf("%s: it has %d files: %v", fs, len(files), err)
		}
		if err := m.Unmount(t.Context(), target); err != nil {
			t.Error(err)
		}
	}
}
