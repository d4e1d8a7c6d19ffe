package kernel

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// listed puts a device into the kernel's list.
func listed(t *testing.T, dir, device string, files map[string]string) {
	t.Helper()
	dir = filepath.Join(dir, device, "dm")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDevicesAreListedWithWhetherTheyAreSuspended(t *testing.T) {
	dir := t.TempDir()
	listed(t, dir, "dm-0", map[string]string{"name": "vg-pool-tpool\n", "suspended": "1\n"})
	listed(t, dir, "dm-1", map[string]string{"name": "vg-pool_tdata\n", "suspended": "0\n"})
	listed(t, dir, "dm-2", map[string]string{"name": "vg-going\n"}) // which disappears just now
	listed(t, dir, "loop0", map[string]string{"name": "none", "suspended": "1\n"})
	got, err := mapped(dir)
	if want := (map[string]bool{"vg-pool-tpool": true, "vg-pool_tdata": false}); err != nil || !maps.Equal(got, want) {
		t.Errorf("listed %v, %v; want %v", got, err, want)
	}
}

func TestAnUnreadableMappingIsAnError(t *testing.T) {
	dir := t.TempDir()
	listed(t, dir, "dm-0", map[string]string{"name": "vg-pool\n"})
	if err := os.Mkdir(filepath.Join(dir, "dm-0", "dm", "suspended"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := mapped(dir); err == nil {
		t.Errorf("listed %v", got)
	}
}
