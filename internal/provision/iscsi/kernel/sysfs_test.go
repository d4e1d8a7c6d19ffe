package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi"
)

// tree is sysfs as the kernel lays it out, below a directory.
type tree struct {
	t    *testing.T
	root string
}

func (s tree) put(path, text string) {
	s.t.Helper()
	path = filepath.Join(s.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s tree) link(path, to string) {
	s.t.Helper()
	path = filepath.Join(s.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(s.root, to), path); err != nil {
		s.t.Fatal(err)
	}
}

// session makes a session, with a host of its own.
func (s tree) session(number, host int, target, iface, state string) {
	device := fmt.Sprintf("sys/devices/platform/host%d/session%d", host, number)
	own := fmt.Sprintf("%s/iscsi_session/session%d", device, number)
	s.put(own+"/targetname", target)
	s.put(own+"/ifacename", iface)
	s.put(own+"/state", state)
	s.link(own+"/device", device)
	s.link(fmt.Sprintf("sys/class/iscsi_session/session%d", number), own)
	s.put(fmt.Sprintf("sys/class/scsi_host/host%d/scan", host), "")
}

// disk makes a disk of a unit.
func (s tree) disk(host, lun int, name, number string) string {
	address := fmt.Sprintf("%d:0:0:%d", host, lun)
	dir := s.unit(host, lun, "0")
	block := dir + "/block/" + name
	s.put(dir+"/wwid", "naa.60014050000000"+name)
	s.put(block+"/dev", number)
	s.put(block+"/diskseq", "7")
	s.link(block+"/device", "sys/class/scsi_device/"+address+"/device")
	s.link("sys/class/block/"+name, block)
	return block
}

func (s tree) unit(host, lun int, kind string) string {
	address := fmt.Sprintf("%d:0:0:%d", host, lun)
	dir := "sys/class/scsi_device/" + address + "/device"
	s.put(dir+"/type", kind)
	s.put(dir+"/state", "running")
	s.put(dir+"/rescan", "")
	s.put(dir+"/delete", "")
	return dir
}

const array = "iqn.2026-01.com.example:array"

func TestSessionsHaveTheDisksOfTheirHosts(t *testing.T) {
	s := tree{t, t.TempDir()}
	s.session(1, 3, array, "default", "LOGGED_IN")
	s.session(2, 4, array, "eth1", "FAILED")
	s.disk(0, 0, "sda", "8:0") // the machine's own
	block := s.disk(3, 1, "sdb", "8:16")
	s.unit(3, 0, "12") // a controller
	s.unit(3, 2, "1")  // a tape
	s.unit(7, 0, "5")  // the machine's own
	s.unit(4, 2, "0")  // its disk is still to come
	s.put("sys/class/iscsi_connection/connection1:0/local_port", "40312")
	s.put(block+"/sdb1/partition", "1")
	s.put(block+"/sdb1/holders/dm-1/dm/uuid", "LVM-x")
	s.put(block+"/holders/dm-0/dm/uuid", "mpath-x")
	got, err := Kernel{s.root}.Sessions()
	if err != nil {
		t.Fatal(err)
	}
	want := []iscsi.Session{
		{Name: "session1", Target: array, Interface: "default", Connection: "40312", LoggedIn: true, Host: 3, Others: []string{"3:0:0:0", "3:0:0:2"}, Units: []iscsi.Unit{{
			Address: "3:0:0:1", Host: 3, LUN: 1, State: "running", WWID: "naa.60014050000000sdb", Path: "/dev/sdb", Number: "8:16",
			Holders: []string{"dm-0", "dm-1"}, Multipath: "dm-0", LVM: "dm-1", Identity: provision.WholeIdentity("7", "naa.60014050000000sdb"),
		}}},
		{Name: "session2", Target: array, Interface: "eth1", Host: 4, Units: []iscsi.Unit{{Address: "4:0:0:2", Host: 4, LUN: 2, State: "running"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDisksAreNeitherTapesNorControllers(t *testing.T) {
	s := tree{t, t.TempDir()}
	s.disk(0, 0, "sda", "8:0")
	s.unit(3, 0, "12")
	s.unit(3, 2, "1")
	got, err := Kernel{s.root}.Disks()
	if err != nil || len(got) != 1 || got[0].Path != "/dev/sda" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAMachineWithoutSCSIHasNoSessions(t *testing.T) {
	k := Kernel{t.TempDir()}
	sessions, err1 := k.Sessions()
	disks, err2 := k.Disks()
	if err := errors.Join(err1, err2); err != nil || len(sessions)+len(disks) != 0 {
		t.Errorf("%v, %v, %v", sessions, disks, err)
	}
}

func TestASessionThatGoesMeanwhileIsPassedOver(t *testing.T) {
	s := tree{t, t.TempDir()}
	s.session(1, 3, array, "default", "LOGGED_IN")
	s.link("sys/class/iscsi_session/session2", "gone")
	s.link("sys/class/scsi_device/4:0:0:1", "gone")
	if got, err := (Kernel{s.root}).Sessions(); err != nil || len(got) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAFileThatCannotBeUnderstoodIsAnError(t *testing.T) {
	for address, kind := range map[string]string{"one": "0", "two": "1", "3:0:0": "0"} {
		s := tree{t, t.TempDir()}
		s.session(1, 3, array, "default", "LOGGED_IN")
		s.put("sys/class/scsi_device/"+address+"/device/type", kind)
		if got, err := (Kernel{s.root}).Sessions(); err == nil {
			t.Errorf("%s: %+v", address, got)
		}
	}
}

func TestOrdersAreWrittenToTheFilesOfTheUnitAndItsHost(t *testing.T) {
	s := tree{t, t.TempDir()}
	k := Kernel{s.root}
	s.session(1, 3, array, "default", "LOGGED_IN")
	s.disk(3, 1, "sdb", "8:16")
	u := iscsi.Unit{Address: "3:0:0:1"}
	if err := errors.Join(k.Scan(t.Context(), iscsi.Session{Host: 3}, 1), k.Rescan(u), k.Remove(u), k.Remove(iscsi.Unit{Address: "3:0:0:9"})); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"scsi_host/host3/scan": "- - 1", "scsi_device/3:0:0:1/device/rescan": "1", "scsi_device/3:0:0:1/device/delete": "1",
	} {
		got, err := os.ReadFile(filepath.Join(s.root, "sys/class", path))
		if err != nil || string(got[:len(want)]) != want {
			t.Errorf("%s has %q, %v; want %q", path, got, err, want)
		}
	}
}

func TestAScanWaitsForTheDiskAndNotLongerThanItsContext(t *testing.T) {
	s := tree{t, t.TempDir()}
	s.session(1, 3, array, "default", "LOGGED_IN")
	s.unit(3, 1, "0")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (Kernel{s.root}).Scan(ctx, iscsi.Session{Host: 3}, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a unit without a disk: %v", err)
	}
	if err := (Kernel{s.root}).Scan(t.Context(), iscsi.Session{Host: 3}, 2); err != nil {
		t.Errorf("a unit that the target does not have: %v", err)
	}
}

func TestANodeThatLeadsElsewhereIsNotOpened(t *testing.T) {
	s := tree{t, t.TempDir()}
	s.put("dev/sdb", "no device")
	if _, err := (Kernel{s.root}).Open(iscsi.Unit{Path: "/dev/sdb", Number: "8:16"}, false); err == nil {
		t.Error("a file was opened as the disk")
	}
}
