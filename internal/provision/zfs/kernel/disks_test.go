package kernel

import (
	"os"
	"path/filepath"
	"testing"
)

func TestADiskIsNamedByALinkThatStaysIfThereIsOne(t *testing.T) {
	dev := t.TempDir()
	byID := filepath.Join(dev, "disk", "by-id")
	if err := os.MkdirAll(byID, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"sda", "sda1", "sdb"} {
		if err := os.WriteFile(filepath.Join(dev, node), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"wwn-0x5000": "../../sda", "ata-MODEL_7": "../../sda", "ata-MODEL_7-part1": "../../sda1", "ata-GONE_1": "../../sdz",
	} {
		if err := os.Symlink(target, filepath.Join(byID, link)); err != nil {
			t.Fatal(err)
		}
	}
	for node, want := range map[string]string{
		filepath.Join(dev, "sda"): filepath.Join(byID, "ata-MODEL_7"),
		filepath.Join(dev, "sdb"): filepath.Join(dev, "sdb"),
	} {
		if got := aliasIn(byID, node); got != want {
			t.Errorf("%s is named %s, want %s", node, got, want)
		}
	}
	if got := aliasIn(filepath.Join(dev, "none"), "/dev/sda"); got != "/dev/sda" {
		t.Errorf("without udev the disk is named %s", got)
	}
}
