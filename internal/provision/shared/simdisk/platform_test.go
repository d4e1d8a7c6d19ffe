//go:build platform

package simdisk_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/conformance"
	"berth.dev/berth/internal/provision/shared/simdisk"
	"berth.dev/berth/internal/run"
)

// made makes a disk as an administrator does, and detaches all nodes after the test.
func made(t *testing.T, dir, name string) shared.Disk {
	t.Helper()
	d := shared.Disk{Volume: "vol", Handle: "sim:///" + name, Identity: "wwn:1"}
	at := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(at, 0o700), os.WriteFile(filepath.Join(at, "identity"), []byte(d.Identity+"\n"), 0o600),
		os.WriteFile(filepath.Join(at, "disk"), nil, 0o600), os.Truncate(filepath.Join(at, "disk"), 16<<20)); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTheSimulatedDiskWithDevicesConforms(t *testing.T) {
	conformance.Run(t, func(t *testing.T) *conformance.World {
		dir := t.TempDir()
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "disk"), nil, 0o600), os.Truncate(filepath.Join(dir, "disk"), 1<<20)); err != nil {
			t.Fatal(err)
		}
		c := config()
		c.Device = true
		target, err := simdisk.Open(dir, c)
		if err != nil {
			t.Fatal(err)
		}
		w := world(t, target, false)
		t.Cleanup(func() { // whatever a test left
			_ = target.Replace(disk.Identity)
			for _, n := range []string{"a", "b", "c"} {
				if err := target.Node(n).Detach(contextOfProcess(), disk); err != nil {
					t.Error(err)
				}
			}
		})
		plain := w.Open
		w.Open = func(node string) conformance.Device { // the kernel knows that it is open, too
			v, err := w.Node(node).Look(t.Context(), w.Disk)
			if err != nil || v.Content.Source == "" {
				return plain(node)
			}
			f, err := os.OpenFile(v.Content.Source, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			d := plain(node)
			closed := d.Close
			d.Close = func() { f.Close(); closed() }
			return d
		}
		return w
	})
}

func TestALossOfPowerTakesTheDeviceOfOneNodeAndLeavesItsReservation(t *testing.T) {
	dir := t.TempDir()
	d := made(t, dir, "shared")
	a, b := simdisk.In(dir, "a"), simdisk.In(dir, "b")
	key := ownership.Key{Node: "a", Epoch: lineage.Epoch{Number: 1, ID: "one"}}.Raw()
	if err := errors.Join(a.Attach(t.Context(), d), b.Attach(t.Context(), d), a.Register(t.Context(), d, key, shared.Idle), a.Reserve(t.Context(), d, 0, key)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, n := range []shared.Disks{a, b} {
			if err := n.Detach(contextOfProcess(), d); err != nil {
				t.Error(err)
			}
		}
	})
	if err := simdisk.PowerOff(dir, "shared", "a"); err != nil {
		t.Fatal(err)
	}
	if v, err := b.Look(t.Context(), d); err != nil || v.Link != ownership.Attached || v.Holder != key {
		t.Errorf("the other node sees %+v, %v", v, err)
	}
	if v, err := a.Look(t.Context(), d); err != nil || v.Link != ownership.Detached {
		t.Errorf("after its boot the node sees %+v, %v", v, err)
	}
}

func TestTwoNodesOfAMachineHaveDevicesOfOneDisk(t *testing.T) {
	dir := t.TempDir()
	d := made(t, dir, "shared")
	a, b := simdisk.In(dir, "a"), simdisk.In(dir, "b")
	attached := func(disks shared.Disks) provision.Content {
		t.Helper()
		if err := disks.Attach(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		v, err := disks.Look(t.Context(), d)
		if err != nil || v.Link != ownership.Attached {
			t.Fatalf("it is %v, %v", v.Link, err)
		}
		if err := blockdev.Leads(v.Content.Source, v.Content.Identity); err != nil {
			t.Error(err)
		}
		return v.Content
	}
	t.Cleanup(func() {
		if err := errors.Join(a.Detach(contextOfProcess(), d), b.Detach(contextOfProcess(), d)); err != nil {
			t.Error(err)
		}
	})
	on, at := attached(a), attached(b)
	if on == at {
		t.Fatalf("both have %v", on)
	}
	block := bytes.Repeat([]byte("alpha..."), 512)
	f, err := os.OpenFile(on.Source, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(block, 0); err != nil {
		t.Fatal(err)
	}
	if err := a.Detach(t.Context(), d); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("a device that is open is detached: %v", err)
	}
	if err := a.Flush(t.Context(), d); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("a device that is open counts as flushed: %v", err)
	}
	f.Close()
	if err := a.Flush(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	key := ownership.Key{Node: "b", Epoch: lineage.Epoch{Number: 1, ID: "one"}}.Raw()
	if err := b.Register(t.Context(), d, key, shared.Idle); err != nil { // drops old pages
		t.Fatal(err)
	}
	got := make([]byte, len(block))
	f, err = os.Open(at.Source)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, block) {
		t.Errorf("the other node reads %.16q, %v", got, err)
	}
	f.Close()
}

func TestASessionWhoseDeviceIsGoneIsOver(t *testing.T) {
	dir := t.TempDir()
	d := made(t, dir, "gone")
	a := simdisk.In(dir, "a")
	t.Cleanup(func() {
		if err := a.Detach(contextOfProcess(), d); err != nil {
			t.Error(err)
		}
	})
	if err := a.Attach(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	v, err := a.Look(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(v.Content.Source, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = unix.IoctlRetInt(int(f.Fd()), unix.LOOP_CLR_FD) // as a restart of the machine does
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	if v, err := a.Look(t.Context(), d); err != nil || v.Link != ownership.Detached {
		t.Errorf("it is %v, %v", v.Link, err)
	}
	if err := a.Attach(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if v, err := a.Look(t.Context(), d); err != nil || v.Link != ownership.Attached || v.Registered != 0 {
		t.Errorf("after another attach it is %+v, %v", v, err)
	}
}

func TestADiskThatNoAdministratorHasMadeIsNotThere(t *testing.T) {
	dir := t.TempDir()
	a := simdisk.In(dir, "a")
	for handle, class := range map[string]error{"sim:///none": provision.ErrUnavailable, "sim:///../etc": provision.ErrInvalid, "sim://host/a": provision.ErrInvalid} {
		if err := a.Attach(t.Context(), shared.Disk{Volume: "vol", Handle: handle, Identity: "wwn:1"}); !errors.Is(err, class) {
			t.Errorf("attaching %s: %v, want %v", handle, err, class)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
}

// The page of shared disks has commands that make a simulated disk, and commands that wipe one.
func TestTheCommandsOfTheDocumentsMakeADiskAndWipeIt(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/shared-disks.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(begins string) string {
		_, after, ok := strings.Cut(string(text), "```\n"+begins)
		if !ok {
			t.Fatalf("the page has no commands that begin with %s", begins)
		}
		commands, _, _ := strings.Cut(after, "```")
		return begins + commands
	}
	sh := func(commands string) {
		t.Helper()
		if out, err := (run.Exec{}).Change(run.Command{Operation: "the commands", Program: "sh", Args: []string{"-ec", commands}}); err != nil {
			t.Fatalf("%s: %v: %s", commands, err, out)
		}
	}
	dir := t.TempDir()
	sh(strings.ReplaceAll(block("mkdir"), "/srv/berth-disks", dir))
	d := shared.Disk{Volume: "vol", Handle: "sim:///demo", Identity: "demo-serial-1"}
	a := simdisk.In(dir, "a")
	t.Cleanup(func() {
		if err := a.Detach(contextOfProcess(), d); err != nil {
			t.Error(err)
		}
	})
	if err := a.Attach(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	v, err := a.Look(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	sh("mkfs.ext4 -q " + v.Content.Source)
	sh(strings.ReplaceAll(block("wipefs"), "DEVICE", v.Content.Source))
	f, err := os.Open(v.Content.Source)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	head := make([]byte, 2<<20)
	if _, err := f.ReadAt(head, 0); err != nil || !blockdev.Zeros(head) {
		t.Errorf("the disk is not empty, %v", err)
	}
	f.Close()
}
