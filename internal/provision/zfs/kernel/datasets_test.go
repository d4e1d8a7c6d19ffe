package kernel

import (
	"os"
	"path/filepath"
	"testing"
)

func TestADatasetIsMountedIfTheKernelKeepsStatisticsOfIt(t *testing.T) {
	const head = "28 1 0x01 7 2160 5214787391 73405258558961\nname                            type data\n"
	for name, tc := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"no zpool":           {nil, false},
		"no mounted dataset": {map[string]string{"state": "ONLINE\n"}, false},
		"the dataset": {map[string]string{
			"objset-0x36": head + "dataset_name                    7    tank/berth/pvc-1\nwrites                          4    4095\n",
		}, true},
		"datasets with similar names": {map[string]string{
			"objset-0x36": head + "dataset_name                    7    tank/berth/pvc-10\n",
			"objset-0x37": head + "dataset_name                    7    tank/berth/pvc\n",
		}, false},
		"an unreadable file": {map[string]string{"objset-0x36": head}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range tc.files {
				path := filepath.Join(dir, "tank", file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := mountedIn(dir, "tank/berth/pvc-1"); got != tc.want {
				t.Errorf("mounted: %v, want %v", got, tc.want)
			}
		})
	}
}
