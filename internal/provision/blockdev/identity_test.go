package blockdev

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
)

// sysfs is a directory as the kernel lays it out: devices by their numbers lead to where they are.
func sysfs(t *testing.T, files map[string]string) (byNumber string) {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	byNumber = filepath.Join(root, "dev/block")
	if err := os.MkdirAll(byNumber, 0o755); err != nil {
		t.Fatal(err)
	}
	for number, dir := range map[string]string{"253:0": "dm-0", "8:1": "sda/sda1", "8:0": "sda", "7:0": "loop0", "230:0": "zd0"} {
		if err := os.Symlink(filepath.Join("../../devices", dir), filepath.Join(byNumber, number)); err != nil {
			t.Fatal(err)
		}
	}
	return byNumber
}

func TestTheKernelIdentifiesADeviceByItsNumber(t *testing.T) {
	dir := sysfs(t, map[string]string{
		"devices/dm-0/dm/name":       "vg0-pvc--a",
		"devices/dm-0/dm/uuid":       "LVM-group1volume1",
		"devices/sda/diskseq":        "7",
		"devices/sda/device/wwid":    "naa.5000 x",
		"devices/sda/sda1/partition": "1",
		"devices/sda/sda1/start":     "2048",
		"devices/sda/sda1/size":      "8192",
		"devices/loop0/diskseq":      "12",
		"devices/loop0/loop/offset":  "0",
		"devices/zd0/size":           "8192",
	})
	for name, tc := range map[string]struct {
		major, minor uint32
		want         provision.Identity
	}{
		"a logical volume":                      {253, 0, provision.MappedIdentity("vg0-pvc--a", "LVM-group1volume1")},
		"a partition":                           {8, 1, provision.PartitionIdentity("7", "naa.5000 x", 1<<20, 4<<20)},
		"a disk":                                {8, 0, provision.WholeIdentity("7", "naa.5000 x")},
		"a loop device":                         {7, 0, provision.WholeIdentity("12", "loop")},
		"a device that sysfs does not identify": {230, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := identify(dir, unix.Mkdev(tc.major, tc.minor)); err != nil || got != tc.want {
				t.Errorf("it is %q, %v; want %q", got, err, tc.want)
			}
		})
	}
	for _, is := range []provision.Identity{provision.MappedIdentity("vg0-pvc--a", "LVM-group1volume1"), provision.PartitionIdentity("7", "naa.5000 x", 1<<20, 4<<20)} {
		n, err := find(dir, is)
		if got, _ := identify(dir, n); err != nil || got != is {
			t.Errorf("%s is found at %d, which is %s: %v", is, n, got, err)
		}
	}
	for is, class := range map[provision.Identity]error{
		"": provision.ErrUnavailable, provision.MappedIdentity("vg0-pvc--a", "LVM-group1volume2"): provision.ErrNotFound,
	} {
		if n, err := find(dir, is); !errors.Is(err, class) {
			t.Errorf("%q is found at %d, %v, want %v", is, n, err, class)
		}
	}
	if got, err := identify(dir, unix.Mkdev(253, 9)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a number that no device bears is %q, %v", got, err)
	}
}

func TestAnotherDeviceOrNoneIsRefused(t *testing.T) {
	is, other := provision.MappedIdentity("vg0-a", "LVM-1"), provision.MappedIdentity("vg0-a", "LVM-2")
	for name, tc := range map[string]struct {
		got, is provision.Identity
		err     error
		says    string
	}{
		"a device of another uuid":                       {got: other, is: is, says: "/dev/vg0/a is another device: dm:vg0-a LVM-2, not dm:vg0-a LVM-1"},
		"a device of an unknown kind":                    {is: is, says: "of an unknown kind"},
		"a path without a device":                        {err: os.ErrNotExist, is: is, says: "leads to no device"},
		"a device that cannot be read":                   {err: unix.EIO, is: is, says: "input/output error"},
		"a device without an expected identity":          {got: is, says: "it is not known which device"},
		"an unknown device without an expected identity": {says: "it is not known which device"},
	} {
		t.Run(name, func(t *testing.T) {
			err := compare("/dev/vg0/a", tc.got, tc.err, tc.is)
			if !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want ErrUnavailable that says %q", err, tc.says)
			}
		})
	}
	if err := compare("/dev/vg0/a", is, nil, is); err != nil {
		t.Errorf("the device itself: %v", err)
	}
}

func TestAFileThatIsNoBlockDeviceIsRefused(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Prove(int(f.Fd()), f.Name(), "dm:a"); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("proved: %v", err)
	}
	if err := Leads(f.Name(), "dm:a"); err == nil {
		t.Error("it leads to a device")
	}
}
