package kernel

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/internal/provision/lvm/group"
)

// listed puts a device into the kernel's list.
func listed(t *testing.T, dir, device string, files map[string]string) {
	t.Helper()
	dir = filepath.Join(dir, device)
	if err := os.MkdirAll(filepath.Join(dir, "dm"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDevicesAreListedWithTheirState(t *testing.T) {
	dir := t.TempDir()
	listed(t, dir, "dm-0", map[string]string{"dm/name": "vg-pool-tpool\n", "dm/suspended": "1\n", "ro": "0\n"})
	listed(t, dir, "dm-1", map[string]string{"dm/name": "vg-pool_tdata\n", "dm/suspended": "0\n", "ro": "0\n"})
	listed(t, dir, "dm-2", map[string]string{"dm/name": "vg-pool_tmeta\n", "dm/suspended": "0\n", "ro": "1\n"})
	listed(t, dir, "dm-3", map[string]string{"dm/name": "vg-going\n"}) // which disappears just now
	listed(t, dir, "loop0", map[string]string{"dm/name": "none", "dm/suspended": "1\n", "ro": "0\n"})
	got, err := mapped(dir)
	want := map[string]group.Mapping{"vg-pool-tpool": {Suspended: true}, "vg-pool_tdata": {}, "vg-pool_tmeta": {ReadOnly: true}}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("listed %v, %v; want %v", got, err, want)
	}
}

func TestAnUnreadableMappingIsAnError(t *testing.T) {
	dir := t.TempDir()
	listed(t, dir, "dm-0", map[string]string{"dm/name": "vg-pool\n"})
	if err := os.Mkdir(filepath.Join(dir, "dm-0", "dm", "suspended"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := mapped(dir); err == nil {
		t.Errorf("listed %v", got)
	}
}
