package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/lab/internal/guest/wire"
)

type entry struct {
	name string
	kind byte
	mode int64
	data string
}

func archive(t *testing.T, entries ...entry) *bytes.Buffer {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, e := range entries {
		head := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: e.mode, Size: int64(len(e.data))}
		if err := w.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &buffer
}

func planEntry(t *testing.T, p wire.Plan) entry {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return entry{wire.PlanFile, tar.TypeReg, 0o600, string(data)}
}

var testPlan = wire.Plan{Hostname: "guest", Token: "0123456789abcdef"}

func TestSeedReplacesFilesWithTheirModes(t *testing.T) {
	root := t.TempDir()
	old := filepath.Join(root, "etc/hosts")
	if err := os.MkdirAll(filepath.Dir(old), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, []byte("a much longer old content"), 0o600); err != nil {
		t.Fatal(err)
	}
	plan, err := readSeed(archive(t, planEntry(t, testPlan),
		entry{"etc/hosts", tar.TypeReg, 0o644, "new"},
		entry{"root/bin/tool", tar.TypeReg, 0o755, "tool"},
	), root)
	if err != nil || plan.Hostname != "guest" {
		t.Fatalf("got plan %+v, %v", plan, err)
	}
	for name, want := range map[string]struct {
		mode os.FileMode
		data string
	}{"etc/hosts": {0o644, "new"}, "root/bin/tool": {0o755, "tool"}} {
		path := filepath.Join(root, name)
		data, err := os.ReadFile(path)
		if err != nil || string(data) != want.data {
			t.Errorf("%s holds %q, %v", name, data, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want.mode {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
	}
}

func TestSeedThatIsNotOneIsRefused(t *testing.T) {
	for name, entries := range map[string][]entry{
		"it is empty":             nil,
		"the plan is not first":   {{"etc/hosts", tar.TypeReg, 0o644, "x"}, planEntry(t, testPlan)},
		"the plan is not JSON":    {{wire.PlanFile, tar.TypeReg, 0o600, "{"}},
		"the plan is not valid":   {planEntry(t, wire.Plan{Hostname: "guest"})},
		"a file leads outside":    {planEntry(t, testPlan), {"../outside", tar.TypeReg, 0o644, "x"}},
		"a file is absolute":      {planEntry(t, testPlan), {"/etc/hosts", tar.TypeReg, 0o644, "x"}},
		"an entry is a symlink":   {planEntry(t, testPlan), {"link", tar.TypeSymlink, 0o777, ""}},
		"an entry is a device":    {planEntry(t, testPlan), {"null", tar.TypeChar, 0o666, ""}},
		"an entry is hard-linked": {planEntry(t, testPlan), {"link", tar.TypeLink, 0o644, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			if _, err := readSeed(archive(t, entries...), filepath.Join(parent, "root")); err == nil {
				t.Error("it was accepted")
			}
			if _, err := os.Stat(filepath.Join(parent, "outside")); err == nil {
				t.Error("a file was written outside of the root")
			}
		})
	}
}
