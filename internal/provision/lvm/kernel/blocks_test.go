package kernel

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision/lvm/group"
)

// sysfs makes a directory with these files, by path, as the kernel would show them. class/block
// links to all disks and partitions below devices, dev/block to those with a file dev.
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
	devices, err := filepath.Glob(filepath.Join(root, "devices/*"))
	must(err)
	partitions, err := filepath.Glob(filepath.Join(root, "devices/*/*/partition"))
	must(err)
	for _, p := range partitions {
		devices = append(devices, filepath.Dir(p))
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
