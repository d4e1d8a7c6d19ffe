package guest

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheKernelIsCopiedWithoutLinksToWhereItWasBuilt(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "modules")
	if err := os.MkdirAll(filepath.Join(from, "6.1/updates"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(from, "6.1/updates/zfs.ko"), []byte("module"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/src/headers", filepath.Join(from, "6.1/build")); err != nil {
		t.Fatal(err)
	}
	if err := copyTree(to, from); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(to, "6.1/updates/zfs.ko")); err != nil || string(got) != "module" {
		t.Errorf("the module is %q, %v", got, err)
	}
	if _, err := os.Lstat(filepath.Join(to, "6.1/build")); !os.IsNotExist(err) {
		t.Errorf("the link was copied: %v", err)
	}
}

func TestGuestsWithZFSShareNothingWithTheOthers(t *testing.T) {
	if zfsKernelRecipe().Address() == rootRecipe().Address() {
		t.Error("the two have one address")
	}
}
