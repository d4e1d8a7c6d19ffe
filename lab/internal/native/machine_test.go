package native

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/guest/wire"
)

func testSpec() Spec {
	return Spec{
		Name: "node1", Network: "test", Address: netip.MustParsePrefix("10.77.0.10/24"), MAC: "02:77:00:00:01:01",
		Programs: map[string]string{"bin/kubelet": "/cache/kubernetes/kubelet"},
		Services: []wire.Service{{Name: "kubelet", Argv: []string{"/opt/lab/bin/kubelet"}}},
		Disks:    guest.NewDisks(2, 1<<20), Cgroup: "/berth-lab-test/node1",
		Files: []guest.File{{Path: "/etc/hostname", Mode: 0o644, Data: []byte("node1\n")}},
	}
}

func create(t *testing.T) (*Machine, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "node1")
	m, err := Create(dir, testSpec())
	if err != nil {
		t.Fatal(err)
	}
	return m, dir
}

func TestANodeIsFoundAgainAsItWasMade(t *testing.T) {
	m, dir := create(t)
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := m.record
	want.Spec.Files = nil // Create has written them to its root directory
	if diff := cmp.Diff(want, again.record, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("node changed on its way through the file:\n%s", diff)
	}
	if got, err := os.ReadFile(filepath.Join(dir, upperDir, "etc/hostname")); err != nil || string(got) != "node1\n" {
		t.Errorf("the node's own file holds %q, %v", got, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "disk2.raw")); err != nil || info.Size() != 1<<20 {
		t.Errorf("the second disk is %v, %v; want a file of 1M", info, err)
	}
}

func TestADirectoryWithoutARecordIsNoNode(t *testing.T) {
	if _, err := Open(t.TempDir()); !errors.Is(err, guest.ErrNotExist) {
		t.Errorf("Open = %v, want ErrNotExist", err)
	}
}

func TestANativeNodeRefusesWhatNeedsAKernelOfItsOwn(t *testing.T) {
	m, _ := create(t)
	_, diskErr := m.AddDisk(t.Context(), 1<<20)
	for what, err := range map[string]error{
		"freeze": m.Freeze(t.Context()), "add a disk": diskErr, "remove a disk": m.RemoveDisk(t.Context(), "disk1"),
	} {
		if err == nil || !strings.Contains(err.Error(), "without --native") {
			t.Errorf("%s: %v, want an error that names the way out", what, err)
		}
	}
}

func TestANodeThatIsOffIsNotPaused(t *testing.T) {
	m, _ := create(t)
	for what, err := range map[string]error{"pause": m.Pause(t.Context()), "resume": m.Resume(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "powered off") {
			t.Errorf("%s: %v, want that it is powered off", what, err)
		}
	}
}

func TestANodeThatIsOffRunsNothing(t *testing.T) {
	m, _ := create(t)
	if m.Power() != guest.Off {
		t.Errorf("a new node is %s", m.Power())
	}
	if _, err := m.Exec(t.Context(), guest.ExecRequest{Argv: []string{"true"}}); err == nil || !strings.Contains(err.Error(), "powered off") {
		t.Errorf("Exec = %v, want that it is powered off", err)
	}
	if m.Device(m.Disks()[0]) != "" {
		t.Error("a disk of a node that is off has a device")
	}
}

func TestOnlyProcessOneIsANodesInit(t *testing.T) {
	_, dir := create(t)
	if err := Init(dir); err == nil || !strings.Contains(err.Error(), "lab up") {
		t.Errorf("Init = %v, want who starts it", err)
	}
}
