//go:build platform

package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision/btrfs/btrfstest"
)

// The kernel gives a disk of a filesystem the name by which it was mounted last.
func TestAMappedDiskIsMountedByTheNameThatPeopleUse(t *testing.T) {
	disk, dir := btrfstest.Disk(t, 1<<20), t.TempDir()
	var st unix.Stat_t
	if err := unix.Stat(disk, &st); err != nil {
		t.Fatal(err)
	}
	mapped := fmt.Sprintf("/dev/mapper/berth-test-%d", os.Getpid())
	for file, text := range map[string]string{
		"dev": fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev)), "dm/name": filepath.Base(mapped),
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	leads := func(want string) {
		t.Helper()
		if node, err := leading(dir, filepath.Base(disk)); err != nil || node != want {
			t.Errorf("its node is %q, %v; want %s", node, err, want)
		}
	}
	leads(disk) // there is no such name
	t.Cleanup(func() { _ = os.Remove(mapped) })
	for _, tc := range []struct {
		number uint64
		want   string
	}{{unix.Mkdev(unix.Major(st.Rdev), 1<<19), disk}, {st.Rdev, mapped}} {
		_ = os.Remove(mapped)
		if err := unix.Mknod(mapped, unix.S_IFBLK|0o600, int(tc.number)); err != nil {
			t.Fatal(err)
		}
		leads(tc.want)
	}
}
