//go:build platform

package guesttest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision/blockdev/faultydisk"
)

const (
	diskName = "berth-disk"
	diskPath = "/dev/mapper/" + diskName
)

// newDisk makes an empty disk out of the beginning of a real one. LVM sees only the new disk,
// because the real one bears the same label.
func newDisk(t *testing.T, backing string, size int64) *faultydisk.Disk {
	t.Helper()
	seeOnly(t, diskPath)
	d := faultydisk.New(t, diskName, backing, size)
	t.Cleanup(func() { freed(t) })
	return d
}

// seeOnly has all LVM commands of this process see one device alone, by a configuration file.
func seeOnly(t *testing.T, path string) {
	dir := t.TempDir()
	config := fmt.Sprintf("devices {\n\tglobal_filter = [ \"a|^%s$|\", \"r|.*|\" ]\n\tuse_devicesfile = 0\n}\n", path)
	if err := os.WriteFile(filepath.Join(dir, "lvm.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LVM_SYSTEM_DIR", dir)
}

// freed removes the devices that the device mapper still has on the disk.
func freed(t *testing.T) {
	t.Helper()
	for {
		idle := devices(t, 0)
		if len(idle) == 0 {
			return
		}
		for _, name := range idle {
			faultydisk.Dmsetup(t, "remove", "--force", "--retry", name)
		}
	}
}

// devices returns the names of the logical volumes' devices in the kernel that are open at most
// opened times.
func devices(t *testing.T, opened int) (names []string) {
	t.Helper()
	for line := range strings.Lines(faultydisk.Dmsetup(t, "info", "--columns", "--noheadings", "--separator", " ", "--options", "name,open")) {
		name, count, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(count); err == nil && n <= opened && strings.HasPrefix(name, "vg--") {
			names = append(names, name)
		}
	}
	return names
}
