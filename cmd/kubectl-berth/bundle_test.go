package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/bundle"
)

// pack runs kubectl berth bundle.
func pack(t *testing.T, c client.Reader, args ...string) (out, notes string, err error) {
	t.Helper()
	connect := func(target) (client.Reader, string, error) { return c, "shop", nil }
	logs := func(target) (bundle.LogReader, error) {
		return func(context.Context, client.ObjectKey, string, bool) (io.ReadCloser, error) {
			return nil, errors.New("no logs")
		}, nil
	}
	cmd := newBundleCommand(&target{system: "berth-system"}, connect, logs, testingclock.NewFakePassiveClock(time.Unix(0, 0)))
	var stdout, stderr strings.Builder
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// entries returns the names of an archive's files.
func entries(t *testing.T, path string) []string { names, _ := untar(t, path); return names }

// contents returns the contents of an archive's files.
func contents(t *testing.T, path string) []string { _, texts := untar(t, path); return texts }

func untar(t *testing.T, path string) (names, texts []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	gz, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names, texts
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names, texts = append(names, h.Name), append(texts, string(text))
	}
}

func TestABundleIsAFileOfItsOwner(t *testing.T) {
	t.Chdir(t.TempDir())
	const name = "berth-bundle-19700101T000000Z"
	out, notes, err := pack(t, awake(t, wreck(t)))
	if err != nil || out != name+".tar.gz\n" || !strings.Contains(notes, "objects/volumes.yaml\n") {
		t.Fatalf("%v: %s%s", err, out, notes)
	}
	found := strings.Join(entries(t, name+".tar.gz"), "\n")
	for _, path := range []string{"status", "nodes", "pools", "volumes", "replicas", "doctor", "orphans", "version"} {
		if !strings.Contains(found, name+"/reports/"+path+".json") {
			t.Errorf("it lacks the report %s: %s", path, found)
		}
	}
	if !strings.HasSuffix(found, name+"/manifest.json") {
		t.Errorf("it does not end with its manifest: %s", found)
	}
	if info, err := os.Stat(name + ".tar.gz"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: %v", err, info.Mode())
	}
	if _, _, err := pack(t, wreck(t)); err == nil || !strings.Contains(err.Error(), "exists: name another file with --file") {
		t.Errorf("a file is overwritten: %v", err)
	}
}

func TestABundleThatCannotBeWrittenLeavesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.tar.gz")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := writeBundle(ctx, path, bundle.Options{Reader: wreck(t), Progress: io.Discard})
	if _, there := os.Stat(path); !errors.Is(err, context.Canceled) || !errors.Is(there, os.ErrNotExist) {
		t.Errorf("%v, %v", err, there)
	}
}
