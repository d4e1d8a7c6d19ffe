package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/lab/internal/artefact"
)

var today = time.Date(2024, 5, 31, 12, 0, 0, 0, time.UTC)

// cache returns a store with artefacts. days says how many days each has been unused.
func cache(t *testing.T, days map[string]int) *artefact.Store {
	t.Helper()
	store := &artefact.Store{Dir: t.TempDir()}
	for name, unused := range days {
		dir, err := store.Get(t.Context(), artefact.Recipe{Name: name, Make: func(_ context.Context, dir string, _ io.Writer) error {
			return os.WriteFile(filepath.Join(dir, "file"), make([]byte, 3<<20), 0o600)
		}})
		if err != nil {
			t.Fatal(err)
		}
		aged(t, dir, unused)
	}
	return store
}

func aged(t *testing.T, path string, days int) {
	t.Helper()
	at := today.AddDate(0, 0, -days)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// prune runs the command and returns its output and the remaining artefacts.
func prune(t *testing.T, p pruning) (out string, left []string) {
	t.Helper()
	var b bytes.Buffer
	p.now, p.out = today, &b
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, err := p.store.Entries()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		name, _, _ := strings.Cut(e.Name, "-")
		left = append(left, name)
	}
	return b.String(), left
}

const twoWeeks = 14 * 24 * time.Hour

func TestPruneRemovesArtefactsUnusedForTwoWeeks(t *testing.T) {
	store := cache(t, map[string]int{"containerd": 1, "kubernetes": 15, "userland": 40})
	want := `ARTEFACT                          SIZE   LAST USED
userland-e3b0c44298fc1c149afb     3.0M   40d ago
kubernetes-e3b0c44298fc1c149afb   3.0M   15d ago
2 of 3 artefacts, 6.0M of 9.0M, would be removed.
`
	out, left := prune(t, pruning{store: store, unused: twoWeeks, dry: true})
	if diff := cmp.Diff(want, out); diff != "" || len(left) != 3 {
		t.Errorf("a dry run leaves %v and says\n%s", left, diff)
	}
	out, left = prune(t, pruning{store: store, unused: twoWeeks})
	if diff := cmp.Diff(strings.Replace(want, "would be removed", "removed", 1), out); diff != "" || len(left) != 1 || left[0] != "containerd" {
		t.Errorf("it leaves %v and says\n%s", left, diff)
	}
	out, _ = prune(t, pruning{store: store, unused: twoWeeks})
	if want := "0 of 1 artefacts, 0.0M of 3.0M, removed.\n"; out != want {
		t.Errorf("with nothing to do it says %q, want %q", out, want)
	}
}

func TestPruneKeepsTheArtefactsThatAClusterMayUse(t *testing.T) {
	store := cache(t, map[string]int{"containerd": 19, "kubernetes": 20, "userland": 40})
	state := filepath.Join(t.TempDir(), "cluster.json")
	if err := os.WriteFile(state, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := store.Hold(state); err != nil {
		t.Fatal(err)
	}
	holds, err := filepath.Glob(filepath.Join(store.Dir, "holds", "*"))
	if err != nil || len(holds) != 1 {
		t.Fatal(holds, err)
	}
	aged(t, holds[0], 20)
	out, left := prune(t, pruning{store: store, unused: twoWeeks})
	if diff := cmp.Diff([]string{"containerd", "kubernetes"}, left); diff != "" || !strings.Contains(out, state) {
		t.Errorf("%s\n%s", diff, out)
	}
	if err := os.Remove(state); err != nil {
		t.Fatal(err)
	}
	if out, left := prune(t, pruning{store: store, unused: twoWeeks}); len(left) != 0 {
		t.Errorf("after the cluster's end %v are left: %s", left, out)
	}
}

func TestPruneRefusesATimeToCome(t *testing.T) {
	a := newApp()
	t.Cleanup(a.close)
	cmd := pruneCommand(a)
	cmd.SetArgs([]string{"--unused", "-1h"})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "in the future") {
		t.Error(err)
	}
}
