package kernel

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision/zfs"
)

func TestZpoolsAreSeenInTheKernelsStatistics(t *testing.T) {
	dir := t.TempDir()
	for name, state := range map[string]string{"tank": "ONLINE\n", "slow": "SUSPENDED\n", "going": ""} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if state == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name, "state"), []byte(state), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "arcstats"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := poolsIn(dir)
	want := []zfs.Pool{{Name: "slow", State: "SUSPENDED"}, {Name: "tank", State: "ONLINE"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, zpools (-want +got):\n%s", err, diff)
	}
}

func TestAMachineWithoutZFSHasNoZpools(t *testing.T) {
	if got, err := poolsIn(filepath.Join(t.TempDir(), "none")); err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestALinkIsReplacedInOneStep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "zvol/tank/pvc-1")
	for _, device := range []string{"zd0", "zd16"} {
		target := filepath.Join(dir, device)
		if err := os.WriteFile(target, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := new(Devices).relink(path, target); err != nil {
			t.Fatal(err)
		}
		if got, err := filepath.EvalSymlinks(path); err != nil || filepath.Base(got) != device {
			t.Errorf("the link leads to %s, %v, want %s", got, err, device)
		}
	}
}

func TestADeviceThatIsNoZvolIsNotConfirmed(t *testing.T) {
	if _, err := nameOf("/dev/null"); err == nil {
		t.Error("/dev/null told the name of a dataset")
	}
}
