//go:build deployed

package sanity

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	csisanity "github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
)

// TestTheDeployedDriver runs on a node of a cluster that has Berth, as root. The
// environment names the controller, as gRPC does, and the PoolClass.
func TestTheDeployedDriver(t *testing.T) {
	kubelet := "/var/lib/kubelet"
	// The directory is not below pods, where the kubelet removes directories that it does not
	// know.
	place := filepath.Join(kubelet, "plugins", "local.berth.dev", "sanity")
	t.Cleanup(func() { os.RemoveAll(place) })
	if err := os.MkdirAll(place, 0o755); err != nil {
		t.Fatal(err)
	}
	config := csisanity.NewTestConfig()
	config.Address = "unix://" + kubelet + "/plugins/local.berth.dev/csi.sock"
	config.ControllerAddress = os.Getenv("BERTH_CONTROLLER")
	config.TargetPath = filepath.Join(place, "mount")
	config.StagingPath = filepath.Join(place, "staging")
	config.TestVolumeSize = 64 << 20
	config.TestVolumeExpandSize = 128 << 20
	config.TestVolumeParameters = map[string]string{"poolClass": os.Getenv("BERTH_POOL_CLASS")}
	config.CheckPath = kind
	run(t, config, os.Getenv("BERTH_SKIPPED"))
}

// kind says what is at a path. Without it the suite would run a shell.
func kind(path string) (csisanity.PathKind, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return csisanity.PathIsNotFound, nil
	case err != nil:
		return "", err
	case info.IsDir():
		return csisanity.PathIsDir, nil
	case info.Mode().IsRegular():
		return csisanity.PathIsFile, nil
	default:
		return csisanity.PathIsOther, nil
	}
}
