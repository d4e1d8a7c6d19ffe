//go:build platform

package poold_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	mountconformance "berth.dev/berth/internal/mount/conformance"
	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/kernel"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// serveSystem runs poold on this machine's LVM and dials it. poold makes filesystems, and made
// counts them.
func serveSystem(t *testing.T, made *conformance.Formats) (client *poold.Client, stop func()) {
	t.Helper()
	mounter, err := linux.New(linux.Config{Runner: run.Exec{}})
	if err != nil {
		t.Fatal(err)
	}
	made.Mkfs = mounter.Mkfs
	provisioner, err := lvm.New(lvm.Config{Runner: run.Exec{}, Devices: kernel.Devices{}, Mkfs: made.Make})
	if err != nil {
		t.Fatal(err)
	}
	all := provision.NewMux(provision.Member{Types: []string{provision.LVM, provision.LVMThin}, Provisioner: provisioner})
	stopWatching := conformance.Watching(t, provisioner.Run, all.Run)
	s := socket(t)
	stopServing := serve(t, poold.Config{Socket: s, Node: poold.NewLocal(all, mounter), Healthy: provisioner.Healthy})
	client = connected(t, s)
	stop = func() { client.Close(); stopServing(); stopWatching() }
	t.Cleanup(stop)
	return client, stop
}

func TestProvisionerConformanceOnRealLVMAcrossTheSocket(t *testing.T) {
	pool := lvmtest.RealGroup(t, "vg-poold", lvmtest.Disks(t, 1)[0])
	conformance.Run(t, func(t *testing.T) conformance.Harness {
		lvmtest.EmptyAfter(t, pool.Name)
		made := &conformance.Formats{}
		h := lvmtest.RealHarness(t, pool, made.Of)
		client, stop := serveSystem(t, made)
		h.Provisioner = client
		h.Restart = func() provision.Provisioner {
			stop()
			client, stop = serveSystem(t, made)
			return client
		}
		return h
	})
}

func TestMounterConformanceOnRealDevicesAcrossTheSocket(t *testing.T) {
	vg := lvmtest.RealGroup(t, "vg-poold", lvmtest.Disks(t, 1)[0])
	mountconformance.Run(t, func(t *testing.T) mountconformance.Harness {
		lvmtest.EmptyAfter(t, vg.Name)
		client, _ := serveSystem(t, &conformance.Formats{})
		n := 0
		return mountconformance.Harness{
			Mounter: client,
			Device: func(fs string) provision.Volume {
				n++
				v, err := client.Create(t.Context(), provision.CreateRequest{ID: fmt.Sprintf("pvc-%d", n), Pool: vg, Size: 320 << 20})
				if err == nil && fs != "" {
					v, err = client.Format(t.Context(), provision.FormatRequest{ID: v.ID, Filesystem: fs})
				}
				if err != nil {
					t.Fatal(err)
				}
				return v
			},
			Enlarge: func(v provision.Volume) {
				if _, err := client.Expand(t.Context(), provision.ExpandRequest{ID: v.ID, Size: v.Size + 64<<20}); err != nil {
					t.Fatal(err)
				}
			},
			Hold: func(path string) func() {
				f, err := os.Create(path + "/held")
				if err != nil {
					t.Fatal(err)
				}
				return func() { f.Close() }
			},
			Write: func(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) },
			Read: func(path string) (string, error) {
				b, err := os.ReadFile(path)
				return string(b), err
			},
		}
	})
}

const asStranger = "POOLD_TEST_STRANGER"

func TestUserWithoutRightsIsRefusedThoughTheSocketIsOpen(t *testing.T) {
	if s := os.Getenv(asStranger); s != "" {
		c := dial(t, s)
		if _, err := c.Report(t.Context()); err == nil {
			t.Error("poold answered a stranger")
		}
		return
	}
	s := socket(t)
	serve(t, poold.Config{Socket: s, Node: localNode(newDisks())})
	connected(t, s)
	for path, mode := range map[string]os.FileMode{s: 0o666, filepath.Dir(s): 0o755, filepath.Dir(filepath.Dir(s)): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(filepath.Dir(filepath.Dir(s)), "stranger")
	if err := os.WriteFile(program, self, 0o755); err != nil { //nolint:gosec // the stranger must be able to run it
		t.Fatal(err)
	}
	p, err := os.StartProcess(program, []string{program, "-test.run=^TestUserWithoutRights"}, &os.ProcAttr{
		Dir: "/", Env: []string{asStranger + "=" + s, "TMPDIR=/tmp"}, Files: []*os.File{nil, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if state, err := p.Wait(); err != nil || !state.Success() {
		t.Errorf("the stranger: %v, %v", state, err)
	}
}
