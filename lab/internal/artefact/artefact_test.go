package artefact_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"berth.dev/berth/lab/internal/artefact"
)

// write returns a recipe that writes content and counts how often it is made.
func write(content string, made *atomic.Int32, key ...string) artefact.Recipe {
	return artefact.Recipe{Name: "thing", Key: key, Make: func(_ context.Context, dir string, log io.Writer) error {
		made.Add(1)
		fmt.Fprintln(log, "writing", content)
		return os.WriteFile(filepath.Join(dir, "file"), []byte(content), 0o644)
	}}
}

func read(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestAnArtefactIsMadeOncePerKey(t *testing.T) {
	store := &artefact.Store{Dir: t.TempDir()}
	var made atomic.Int32
	for _, c := range []struct {
		content string
		key     []string
	}{{"1", []string{"ab", "c"}}, {"1", []string{"ab", "c"}}, {"2", []string{"a", "bc"}}} {
		dir, err := store.Get(t.Context(), write(c.content, &made, c.key...))
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, dir); got != c.content {
			t.Errorf("key %q holds %q, want %q", c.key, got, c.content)
		}
	}
	if made.Load() != 2 {
		t.Errorf("made %d times, want 2", made.Load())
	}
}

func TestConcurrentCallersShareOneMaking(t *testing.T) {
	dir := t.TempDir()
	var made atomic.Int32
	var g errgroup.Group
	for range 8 {
		g.Go(func() error { // a store each, as in separate processes
			_, err := (&artefact.Store{Dir: dir}).Get(t.Context(), write("x", &made, "k"))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if made.Load() != 1 {
		t.Errorf("made %d times, want 1", made.Load())
	}
}

func TestAFailedMakingNamesItsLogAndLeavesNoArtefact(t *testing.T) {
	store := &artefact.Store{Dir: t.TempDir()}
	boom := errors.New("boom")
	failing := artefact.Recipe{Name: "thing", Key: []string{"k"}, Make: func(_ context.Context, dir string, log io.Writer) error {
		fmt.Fprintln(log, "half done")
		return errors.Join(os.WriteFile(filepath.Join(dir, "half"), nil, 0o644), boom)
	}}
	_, err := store.Get(t.Context(), failing)
	build, ok := errors.AsType[*artefact.BuildError](err)
	if !ok || !errors.Is(err, boom) {
		t.Fatalf("error is %v, want a BuildError that wraps boom", err)
	}
	if !strings.Contains(err.Error(), build.Log) {
		t.Errorf("error %q does not name the log %s", err, build.Log)
	}
	log, readErr := os.ReadFile(build.Log)
	if readErr != nil || !strings.Contains(string(log), "half done") {
		t.Errorf("log holds %q (%v), want what Make wrote", log, readErr)
	}

	var made atomic.Int32
	dir, err := store.Get(t.Context(), write("x", &made, "k"))
	if err != nil {
		t.Fatalf("second try: %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("artefact has %d entries, want the one file of the second try", len(entries))
	}
}

func TestLeftoversOfACrashAreNotPartOfTheArtefact(t *testing.T) {
	store := &artefact.Store{Dir: t.TempDir()}
	var made atomic.Int32
	r := write("x", &made, "k")
	part := filepath.Join(store.Dir, r.Address()+".part")
	if err := os.MkdirAll(filepath.Join(part, "stale"), 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := store.Get(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "stale")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stale leftovers became part of the artefact (stat: %v)", err)
	}
}

func TestWaitingForAnotherMakerEndsWithTheContext(t *testing.T) {
	dir := t.TempDir()
	started, release := make(chan struct{}), make(chan struct{})
	slow := artefact.Recipe{Name: "thing", Make: func(context.Context, string, io.Writer) error {
		close(started)
		<-release
		return nil
	}}
	var g errgroup.Group
	g.Go(func() error {
		_, err := (&artefact.Store{Dir: dir}).Get(t.Context(), slow)
		return err
	})
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&artefact.Store{Dir: dir}).Get(ctx, slow); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want context.Canceled", err)
	}
	close(release)
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func TestNamesThatWouldLeaveTheStoreAreRefused(t *testing.T) {
	store := &artefact.Store{Dir: t.TempDir()}
	for _, name := range []string{"", "../up", "a/b", "A", ".hidden"} {
		if _, err := store.Get(t.Context(), artefact.Recipe{Name: name}); err == nil {
			t.Errorf("name %q was accepted", name)
		}
	}
}
