package kernel

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision/lvm/group"
)

// sysfs makes a directory with these files, by path, as the kernel would show them. class/block
// links to all disks and partitions below devices, dev/block to those with a file dev. The disks of an iSCSI session
// are below session1.
func sysfs(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range files {
		path = filepath.Join(root, path)
		must(os.MkdirAll(filepath.Dir(path), 0o700))
		must(os.WriteFile(path, []byte(text), 0o600))
	}
	must(os.MkdirAll(filepath.Join(root, "class/block"), 0o700))
	must(os.MkdirAll(filepath.Join(root, "dev/block"), 0o700))
	var devices []string
	for _, pattern := range []string{"devices/*", "devices/session1/*", "devices/*/*/partition", "devices/session1/*/*/partition"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		must(err)
		for _, path := range found {
			if path = strings.TrimSuffix(path, "/partition"); filepath.Base(path) != "session1" {
				devices = append(devices, path)
			}
		}
	}
	for _, d := range devices {
		must(os.Symlink(d, filepath.Join(root, "class/block", filepath.Base(d))))
		if number, err := os.ReadFile(filepath.Join(d, "dev")); err == nil {
			must(os.Symlink(d, filepath.Join(root, "dev/block", string(number))))
		}
	}
	return root
}

func TestBlockDevicesAreReadFromSysfs(t *testing.T) {
	root := sysfs(t, map[string]string{
		"devices/sda/dev": "8:0", "devices/sda/sda1/partition": "1", "devices/sda/sda1/uevent": "DEVNAME=sda1\nPARTN=1\nPARTNAME=pvc-1\n",
		"devices/sdb/dev": "8:16", "devices/sdb/sdb1/partition": "1", "devices/sdb/sdb1/uevent": "DEVNAME=sdb1\n",
		"devices/dm-0/dm/name": "vg0-pvc--1\n", "devices/dm-0/slaves/sda": "", "devices/dm-0/dev": "253:0",
		"devices/dm-1/dm/name": "vg0-root\n", "devices/dm-1/slaves/sda": "",
		"devices/dm-2/slaves/sda": "", "devices/dm-3/slaves/sda": "",
		"devices/md0/slaves/sda1": "", "devices/md0/slaves/sdb1": "", "devices/md0/uevent": "",
		"devices/session1/sdc/device/type": "0", "devices/session1/sdc/dev": "8:32", "devices/session1/sdc/sdc1/partition": "1", "devices/session1/sdc/sdc1/uevent": "DEVNAME=sdc1\n",
		"devices/nvme0n1/device/transport": "tcp\n", "devices/nvme1n1/device/transport": "pcie\n", "devices/zd0/size": "8\n",
		"devices/loop0/loop/backing_file": "/srv/vg.img\n",
		"devices/loop1/loop/backing_file": "/dev/dm-0\n",
		"devices/loop2/loop/backing_file": "/dev/gone\n",
		"devices/loop3/size":              "0\n",
		"devices/loop4/loop/backing_file": "/dev/just-detached\n",
	})
	backing := func(loop string) (uint64, error) {
		switch loop {
		case "loop1":
			return unix.Mkdev(253, 0), nil
		case "loop2":
			return unix.Mkdev(7, 77), nil
		case "loop4":
			return 0, unix.ENXIO
		}
		return 0, nil
	}
	got, err := blocks(root, map[string]string{"dm-2": "vg0-pvc--2", "dm-3": "vg0-home", "dm-4": "vg0-gone"}, backing)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]group.Block{
		"sda": {}, "sda1": {Below: []string{"sda"}, Partition: "pvc-1"}, "sdb": {}, "sdb1": {Below: []string{"sdb"}},
		"dm-0": {Mapping: "vg0-pvc--1"}, "dm-1": {Below: []string{"sda"}, Mapping: "vg0-root"},
		"dm-2": {Mapping: "vg0-pvc--2"}, "dm-3": {Below: []string{"sda"}, Mapping: "vg0-home"},
		"sdc": {Remote: true}, "sdc1": {Below: []string{"sdc"}}, "nvme0n1": {Remote: true}, "nvme1n1": {}, "zd0": {},
		"md0":   {Below: []string{"sda1", "sdb1"}},
		"loop0": {Backing: "/srv/vg.img"}, "loop1": {Backing: "/dev/dm-0", Over: "dm-0"}, "loop2": {Backing: "/dev/gone", Over: "7:77"},
		"loop3": {}, "loop4": {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestALoopDeviceThatCannotBeAskedIsNotTakenForAFiles(t *testing.T) {
	root := sysfs(t, map[string]string{"devices/loop0/loop/backing_file": "/srv/vg.img\n"})
	for _, failure := range []error{unix.EACCES, fs.ErrNotExist} {
		got, err := blocks(root, nil, func(string) (uint64, error) { return 0, failure })
		if err != nil || got["loop0"].Over == "" {
			t.Errorf("%v: read %+v, %v", failure, got, err)
		}
	}
}

func TestTheDevicesOfThisMachineCanBeRead(t *testing.T) {
	if _, err := blocks("/sys", nil, func(string) (uint64, error) { return 0, nil }); err != nil {
		t.Error(err)
	}
}

func TestUdevSaysWhatItKnowsOfADevice(t *testing.T) {
	root := sysfs(t, map[string]string{
		"devices/sda/dev": "8:0", "devices/sdb/dev": "8:16", "devices/sdc/dev": "8:32",
		"udev/b8:0":  "S:disk/by-id/wwn-0x6001405\nS:disk/by-path/ip-10.0.0.5:3260-iscsi-iqn.x-lun-1\nI:12\nE:ID_FS_TYPE=LVM2_member\n",
		"udev/b8:16": "E:ID_FS_TYPE=ext4\n",
	})
	for name, want := range map[string]group.Known{
		"sda":  {Links: []string{"/dev/disk/by-id/wwn-0x6001405", "/dev/disk/by-path/ip-10.0.0.5:3260-iscsi-iqn.x-lun-1"}, Member: true},
		"sdb":  {},
		"sdc":  {},
		"gone": {},
	} {
		if diff := cmp.Diff(want, known(root, filepath.Join(root, "udev"), name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
