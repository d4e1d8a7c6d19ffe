package guest

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/lab/internal/guest/wire"
)

// off returns a machine that was recorded and does not run.
func off(t *testing.T) *Machine {
	t.Helper()
	m := &Machine{directory{dir: t.TempDir(), record: record{Spec: spec(), Plan: wire.Plan{Token: "secret"}}}}
	if err := m.save(); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestSeedBeginsWithThePlanAndHasTheFiles(t *testing.T) {
	source := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(source, []byte("from the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	seed := Seed{
		Plan: wire.Plan{Hostname: "node1"},
		Files: []File{
			{Path: "/etc/hosts", Mode: 0o644, Data: []byte("hosts")},
			{Path: "/root/tool", Mode: 0o755, Source: source},
		},
	}
	var buffer bytes.Buffer
	if err := seed.write(&buffer); err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(&buffer)
	for _, want := range []struct {
		name, content string
		mode          int64
	}{
		{wire.PlanFile, `"hostname":"node1"`, 0o600}, {"etc/hosts", "hosts", 0o644}, {"root/tool", "from the host", 0o755},
	} {
		head, err := archive.Next()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil || head.Name != want.name || head.Mode != want.mode || !strings.Contains(string(data), want.content) {
			t.Errorf("got %s with mode %o and %q, %v; want %+v", head.Name, head.Mode, data, err, want)
		}
	}
}

func TestSeedWithAFileThatCannotBeReadIsAnError(t *testing.T) {
	for name, source := range map[string]string{"it does not exist": "/no/such/file", "it is a directory": "/"} {
		t.Run(name, func(t *testing.T) {
			seed := Seed{Files: []File{{Path: "/x", Source: source}}}
			if err := seed.write(io.Discard); err == nil || !strings.Contains(err.Error(), source) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestMachineIsOpenedAsItWasRecorded(t *testing.T) {
	m := off(t)
	again, err := Open(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	if again.Name() != "node1" || len(again.Disks()) != 2 || again.Plan.Token != "secret" || again.Power() != Off {
		t.Errorf("got %+v, power %s", again.record, again.Power())
	}
	if info, err := os.Stat(filepath.Join(m.dir, recordFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the record with the token has mode %v, %v", info.Mode(), err)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNotExist) {
		t.Errorf("opening an empty directory: %v", err)
	}
}

func TestMachineThatIsOffSaysSo(t *testing.T) {
	m := off(t)
	_, execErr := m.Exec(t.Context(), ExecRequest{Argv: []string{"true"}})
	for what, err := range map[string]error{
		"exec": execErr, "pause": m.Pause(t.Context()), "resume": m.Resume(t.Context()), "wait": m.WaitReady(t.Context()),
	} {
		if err == nil || !strings.Contains(err.Error(), "node1") || !strings.Contains(err.Error(), "powered") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if err := m.PowerOff(t.Context()); err != nil {
		t.Errorf("powering off what is off: %v", err)
	}
}

func TestDisksOfAMachineThatIsOffComeAndGoWithTheirFiles(t *testing.T) {
	m := off(t)
	disk, err := m.AddDisk(t.Context(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	file := disk.path(m.dir)
	if info, err := os.Stat(file); err != nil || info.Size() != 1<<20 || disk.Name != "disk3" {
		t.Fatalf("got %+v, %v", disk, err)
	}
	again, err := Open(m.dir)
	if err != nil || len(again.Disks()) != 3 {
		t.Fatalf("the disk was not recorded: %v, %v", again.Disks(), err)
	}
	if err := m.RemoveDisk(t.Context(), disk.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", file, err)
	}
	if err := m.RemoveDisk(t.Context(), disk.Name); err == nil {
		t.Error("a disk was removed twice")
	}
	if _, err := m.AddDisk(t.Context(), 1000); err == nil {
		t.Error("a disk of half a sector was added")
	}
}

func TestLastWordsAreQEMUsOrElseTheKernels(t *testing.T) {
	m := off(t)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if words := m.lastWords(); !strings.Contains(words, "empty") {
		t.Errorf("without logs: %q", words)
	}
	write(consoleLog, "booting\nKernel panic\n")
	if words := m.lastWords(); !strings.Contains(words, "Kernel panic") || !strings.Contains(words, m.dir) {
		t.Errorf("with a console log: %q", words)
	}
	write(qemuLog, strings.Repeat("noise\n", 50)+"no such disk\n")
	if words := m.lastWords(); !strings.Contains(words, "no such disk") || strings.Count(words, "\n") > 10 {
		t.Errorf("with both logs: %q", words)
	}
}

func TestThrowAwayDirectoriesOfDeadRunsAreRemovedAndOthersKept(t *testing.T) {
	parent := t.TempDir()
	dead := filepath.Join(parent, "run-dead")
	if err := os.MkdirAll(filepath.Join(dead, "machine"), 0o700); err != nil {
		t.Fatal(err)
	}
	alive := filepath.Join(parent, "run-alive")
	if err := os.Mkdir(alive, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := lockDirectory(alive, unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	own, unlock, err := ownDirectory(t.Context(), parent)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	for dir, want := range map[string]bool{dead: false, alive: true, own: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s exists: %v, want %v", dir, err == nil, want)
		}
	}
}
