package kernel

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/gpt"
)

// machine is a tree of sysfs and /dev.
type machine struct {
	t *testing.T
	Disks
}

func newMachine(t *testing.T) machine {
	m := machine{t, Disks{root: t.TempDir()}}
	m.file(blockDir, "")
	return m
}

// file makes a file, or a directory if the text is empty.
func (m machine) file(path, text string) {
	m.t.Helper()
	path = m.root + path
	dir := path
	if text != "" {
		dir = filepath.Dir(path)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		m.t.Fatal(err)
	}
	if text != "" {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			m.t.Fatal(err)
		}
	}
}

// disk makes a disk of 1 GiB, with the files that every disk has and with more.
func (m machine) disk(name string, more map[string]string) {
	m.t.Helper()
	files := map[string]string{
		"size": "2097152\n", "ro": "0\n", "removable": "0\n", "hidden": "0\n", "diskseq": "7\n", "dev": "8:16\n",
		"queue/rotational": "0\n", "queue/logical_block_size": "512\n", "device/wwid": "naa.1\n",
	}
	maps.Copy(files, more)
	for path, text := range files {
		m.file(filepath.Join(blockDir, name, path), text)
	}
	m.file(filepath.Join(devDir, name), "x")
}

func (m machine) list() []device.Disk {
	m.t.Helper()
	disks, err := m.List()
	if err != nil {
		m.t.Fatal(err)
	}
	return disks
}

func TestADiskIsDescribedAsSysfsSays(t *testing.T) {
	m := newMachine(t)
	m.disk("sdb", map[string]string{
		"queue/rotational": "1", "queue/logical_block_size": "4096", "holders/dm-0/dev": "x",
		"sdb1/partition": "1", "sdb1/start": "2048", "sdb1/size": "4096", "sdb1/holders/md1/dev": "x",
	})
	m.file(devDir+"/disk/by-id", "")
	if err := os.Symlink("../../sdb", m.root+devDir+"/disk/by-id/wwn-1"); err != nil {
		t.Fatal(err)
	}
	want := device.Disk{
		Name: "sdb", Sequence: "7", Identity: "naa.1", Geometry: gpt.Geometry{Size: 1 << 30, Block: 4096}, Rotational: true,
		Links: []string{"/dev/disk/by-id/wwn-1"}, Holders: []string{"dm-0", "md1"},
		Partitions: []device.Partition{{Name: "sdb1", Number: 1, Start: 1 << 20, Length: 2 << 20}},
	}
	if diff := cmp.Diff([]device.Disk{want}, m.list()); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	want.Links = nil
	if got, ok := m.Find("sdb"); !ok || !cmp.Equal(got, want) {
		t.Errorf("found %+v, %v", got, ok)
	}
}

func TestOnlyFixedWritableDisksAreListed(t *testing.T) {
	m := newMachine(t)
	for name, more := range map[string]map[string]string{
		"sda":          nil,
		"nvme0n1":      nil,
		"sr0":          nil,
		"fd0":          nil,
		"nbd0":         nil,
		"loop0":        nil,
		"zd0":          nil,
		"mmcblk0boot0": nil,
		"mmcblk0":      nil,
		"sdc":          {"removable": "1"},
		"sdd":          {"ro": "1"},
		"sde":          {"size": "0"},
		"sdf":          {"queue/logical_block_size": "520"},
		"nvme0c0n1":    {"hidden": "1"},
	} {
		m.disk(name, more)
	}
	m.disk("vda", nil)
	if err := os.Remove(m.root + devDir + "/vda"); err != nil { // a container that does not see it
		t.Fatal(err)
	}
	m.file(blockDir+"/zram1/size", "100")    // no device
	m.file(blockDir+"/md127/device/x", "x")  // nor these
	m.file(blockDir+"/dm-0/dm/uuid", "LVM-") // by their names
	var names []string
	for _, d := range m.list() {
		names = append(names, d.Name)
	}
	if !slices.Equal(names, []string{"mmcblk0", "nvme0n1", "sda"}) {
		t.Errorf("listed %v", names)
	}
	for _, name := range []string{"", "..", "sda/..", "sdz", "sdc"} {
		if d, ok := m.Find(name); ok {
			t.Errorf("%q is found: %+v", name, d)
		}
	}
}

// Several nodes may reach such a disk, and it was attached for another use.
func TestDisksOverANetworkAreNotListed(t *testing.T) {
	m := newMachine(t)
	m.disk("nvme0n1", map[string]string{"device/transport": "tcp"})
	m.disk("nvme1n1", map[string]string{"device/nvme1/transport": "rdma"})
	m.disk("nvme2n1", map[string]string{"device/transport": "pcie"})
	for name, path := range map[string]string{
		"sda": "/sys/devices/platform/host2/session1/target2:0:0/2:0:0:0/block/sda",
		"sdb": "/sys/devices/pci0000:00/host3/rport-3:0-0/target3:0:0/3:0:0:0/block/sdb",
		"sdc": "/sys/devices/pci0000:00/ata1/host0/target0:0:0/0:0:0:0/block/sdc",
	} {
		m.disk(name, nil)
		m.file(filepath.Dir(path), "")
		if err := os.Rename(m.root+filepath.Join(blockDir, name), m.root+path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(m.root+path, m.root+filepath.Join(blockDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, d := range m.list() {
		names = append(names, d.Name)
	}
	if !slices.Equal(names, []string{"nvme2n1", "sdc"}) {
		t.Errorf("listed %v", names)
	}
}

func TestADiskIsIdentifiedByItsBestIdentifier(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"NVMe":                   {map[string]string{"wwid": "eui.0025\n", "device/serial": "S1"}, "eui.0025"},
		"SCSI":                   {map[string]string{"device/wwid": "naa.5000\n", "device/vpd_pg80": "\x00\x80\x00\x02S1"}, "naa.5000"},
		"virtio":                 {map[string]string{"device/wwid": "", "serial": "data-1\n"}, "virtio-data-1"},
		"flash":                  {map[string]string{"device/wwid": "", "device/cid": "1501\n"}, "mmc-1501"},
		"model and serial":       {map[string]string{"device/wwid": "", "device/model": "M\n", "device/serial": "S\n"}, "_M_S"},
		"model and page 80h":     {map[string]string{"device/wwid": "", "device/vendor": "V", "device/model": "M", "device/vpd_pg80": "\x00\x80\x00\x04 S1\x00rest"}, "V_M_S1"},
		"model and a wrong page": {map[string]string{"device/wwid": "", "device/model": "M", "device/vpd_pg80": "\x00\x83\x00\x02S1"}, ""},
		"a model alone":          {map[string]string{"device/wwid": "", "device/model": "M"}, ""},
		"no identifier":          {map[string]string{"device/wwid": ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			files := map[string]string{"device/wwid": " \n"}
			for path, text := range tc.files {
				if text != "" {
					files[path] = text
				}
			}
			m.disk("sda", files)
			if disks := m.list(); len(disks) != 1 || disks[0].Identity != tc.want {
				t.Errorf("listed %+v, want identity %q", disks, tc.want)
			}
		})
	}
}

func TestAMachineWithoutSysfsIsAnError(t *testing.T) {
	if disks, err := (Disks{root: t.TempDir()}).List(); err == nil {
		t.Errorf("listed %+v", disks)
	}
}
