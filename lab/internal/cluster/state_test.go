package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/lab/internal/process"
)

func TestTheStateSurvivesTheCommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "cluster.json")
	settings := Settings{Nodes: 3, Memory: 2 << 30, Disks: 2, DiskSize: 10 << 30}
	st, err := newState(path, "default", settings)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, name := range []string{"etcd", "kube-apiserver", "forwarder"} {
		all.Go(func() {
			if err := st.RecordProcess(process.Record{Name: name, PID: 42, StartTime: 7}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	again, err := loadState(path, "default")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(st.get(), again.get()); diff != "" {
		t.Errorf("state changed on its way through the file:\n%s", diff)
	}
	if rec, ok := again.Process("etcd"); !ok || rec.PID != 42 {
		t.Errorf("Process(etcd) = %v, %v", rec, ok)
	}
	if len(again.processes()) != 3 {
		t.Errorf("%d processes, want 3", len(again.processes()))
	}
}

func TestAMissingStateSaysHowToStart(t *testing.T) {
	_, err := loadState(filepath.Join(t.TempDir(), "cluster.json"), "blue")
	if !errors.Is(err, ErrNotUp) || !strings.Contains(err.Error(), "blue") || !strings.Contains(err.Error(), "lab up") {
		t.Errorf("error is %v", err)
	}
}

func TestADamagedStateNamesItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.json")
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := loadState(path, "default"); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error is %v, want one that names %s", err, path)
	}
}

func TestTwoCommandsAreKeptApart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "default.lock")
	first, err := takeLock(path, "default")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := takeLock(path, "default"); !isBusy(err) {
		t.Errorf("second lock: %v, want a BusyError", err)
	}
	first.release()
	second, err := takeLock(path, "default")
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	if err := second.remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("lock file is still there (%v)", err)
	}
	third, err := takeLock(path, "default")
	if err != nil {
		t.Fatalf("after the removal: %v", err)
	}
	third.release()
}

func isBusy(err error) bool {
	_, ok := errors.AsType[*BusyError](err)
	return ok
}

func TestNamesThatWouldLeaveTheStateDirectoryAreRefused(t *testing.T) {
	for _, name := range []string{"", "..", "a/b", "A", "-a", strings.Repeat("a", 30)} {
		if _, err := newPaths("/var/lib/x", name); err == nil {
			t.Errorf("name %q was accepted", name)
		}
	}
	p, err := newPaths("/var/lib/x", "blue-1")
	if err != nil || p.state() != "/var/lib/x/blue-1/cluster.json" {
		t.Errorf("paths are %v, %v", p, err)
	}
}

func TestSettingsThatCannotWorkAreRefused(t *testing.T) {
	good := Settings{Nodes: 3, Memory: 2 << 30, Disks: 2, DiskSize: 10 << 30}
	cases := map[string]struct {
		change func(*Settings)
		want   string
	}{
		"fewer than no nodes":               {func(s *Settings) { s.Nodes = -1 }, "nodes"},
		"more nodes than addresses":         {func(s *Settings) { s.Nodes = 201 }, "201 nodes"},
		"no address for the control node":   {func(s *Settings) { s.Nodes, s.Control = 200, true }, "0 to 199"},
		"too little memory":                 {func(s *Settings) { s.Memory = 1 << 20 }, "memory"},
		"too many disks":                    {func(s *Settings) { s.Disks = 100 }, "disks"},
		"a disk that ends in a sector":      {func(s *Settings) { s.DiskSize = 1<<20 + 1 }, "bytes"},
		"a disk that holds next to nothing": {func(s *Settings) { s.DiskSize = 512 }, "at least 1M"},
		"another kernel on this machine":    {func(s *Settings) { s.ZFS, s.Native = true, true }, "native nodes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := good
			c.change(&s)
			if err := s.validate(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("validate = %v, want an error with %q", err, c.want)
			}
		})
	}
	if err := good.validate(); err != nil {
		t.Errorf("good settings: %v", err)
	}
}
