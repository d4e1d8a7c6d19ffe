package artefact_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"berth.dev/berth/lab/internal/artefact"
)

var epoch = time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)

// cache returns a store with artefacts that were last used on the given days of May.
func cache(t *testing.T, days ...int) (store *artefact.Store, addresses []string) {
	t.Helper()
	store = &artefact.Store{Dir: t.TempDir()}
	var made atomic.Int32
	for _, day := range days {
		dir, err := store.Get(t.Context(), write("x", &made, "of day", string(rune('a'+day))))
		if err != nil {
			t.Fatal(err)
		}
		age(t, dir, day)
		addresses = append(addresses, filepath.Base(dir))
	}
	return store, addresses
}

func age(t *testing.T, path string, day int) {
	t.Helper()
	at := epoch.AddDate(0, 0, day-1)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func entries(t *testing.T, s *artefact.Store) []artefact.Entry {
	t.Helper()
	all, err := s.Entries()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func names(all []artefact.Entry) []string {
	var names []string
	for _, e := range all {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names
}

func TestAnArtefactUnusedForLongIsStale(t *testing.T) {
	store, addresses := cache(t, 3, 20)
	for _, other := range []string{"guests", "log", "holds", "notes-1234", "." + addresses[0]} {
		if err := os.MkdirAll(filepath.Join(store.Dir, other), 0o755); err != nil {
			t.Fatal(err)
		}
		age(t, filepath.Join(store.Dir, other), 1)
	}
	all := entries(t, store)
	if got, want := names(all), slices.Sorted(slices.Values(addresses)); !slices.Equal(got, want) {
		t.Errorf("the artefacts are %v, want %v", got, want)
	}
	stale := artefact.Stale(all, epoch.AddDate(0, 0, 9))
	if len(stale) != 1 || stale[0].Name != addresses[0] || stale[0].Size == 0 {
		t.Errorf("stale are %+v, want %s with its size", stale, addresses[0])
	}
}

func TestAStaleArtefactIsRemovedWithItsLogAndCanBeMadeAgain(t *testing.T) {
	store, addresses := cache(t, 1, 2)
	for _, e := range artefact.Stale(entries(t, store), epoch.AddDate(0, 0, 1)) {
		if removed, err := store.Remove(t.Context(), e); err != nil || !removed {
			t.Fatalf("removing %s: %v, %v", e.Name, removed, err)
		}
		if _, err := os.Stat(filepath.Join(store.Dir, "log", e.Name+".log")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("its log is left: %v", err)
		}
	}
	if got := names(entries(t, store)); !slices.Equal(got, addresses[1:]) {
		t.Errorf("left are %v, want %v", got, addresses[1:])
	}
	var made atomic.Int32
	if _, err := store.Get(t.Context(), write("x", &made, "of day", "b")); err != nil || made.Load() != 1 {
		t.Errorf("made again %d times, %v", made.Load(), err)
	}
}

func TestAnArtefactUsedAfterTheListingIsNotRemoved(t *testing.T) {
	store, _ := cache(t, 1)
	all := entries(t, store)
	var made atomic.Int32
	if _, err := store.Get(t.Context(), write("x", &made, "of day", "b")); err != nil {
		t.Fatal(err)
	}
	if removed, err := store.Remove(t.Context(), all[0]); err != nil || removed || made.Load() != 0 {
		t.Errorf("removed %v, %v; made again %d times", removed, err, made.Load())
	}
	if left := entries(t, store); len(left) != 1 {
		t.Errorf("left are %+v", left)
	}
}

func TestAnArtefactThatIsBeingMadeIsNotRemoved(t *testing.T) {
	store := &artefact.Store{Dir: t.TempDir()}
	_, err := store.Get(t.Context(), artefact.Recipe{Name: "thing", Make: func(ctx context.Context, dir string, _ io.Writer) error {
		age(t, dir, 1)
		other := &artefact.Store{Dir: store.Dir} // as in another process
		for _, e := range entries(t, other) {
			if removed, err := other.Remove(ctx, e); err != nil || removed {
				t.Errorf("%s: removed %v, %v", e.Name, removed, err)
			}
		}
		return nil
	}})
	if err != nil {
		t.Error(err)
	}
	if all := entries(t, store); len(all) != 1 || time.Since(all[0].Used) > time.Hour {
		t.Errorf("what was made counts as %+v", all)
	}
}

func TestTheLeftoversOfACrashAreStaleAndRemoved(t *testing.T) {
	store, addresses := cache(t, 1)
	if err := os.Rename(filepath.Join(store.Dir, addresses[0]), filepath.Join(store.Dir, addresses[0]+".gone")); err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(store.Dir, addresses[0]+".part")
	if err := os.MkdirAll(filepath.Join(part, "half"), 0o755); err != nil {
		t.Fatal(err)
	}
	age(t, part, 1)
	stale := artefact.Stale(entries(t, store), epoch.AddDate(0, 0, 1))
	if len(stale) != 2 {
		t.Fatalf("stale are %+v", stale)
	}
	for _, e := range stale {
		if removed, err := store.Remove(t.Context(), e); err != nil || !removed {
			t.Errorf("%s: removed %v, %v", e.Name, removed, err)
		}
	}
	if left := entries(t, store); len(left) != 0 {
		t.Errorf("left are %+v", left)
	}
}

func TestNothingButAnArtefactIsRemoved(t *testing.T) {
	store := &artefact.Store{Dir: filepath.Join(t.TempDir(), "store")}
	for _, name := range []string{"", "..", "guests", "../store", "log/x-00000000000000000000"} {
		if removed, err := store.Remove(t.Context(), artefact.Entry{Name: name}); err == nil || removed {
			t.Errorf("%q: removed %v, %v", name, removed, err)
		}
	}
	if all, err := store.Entries(); err != nil || len(all) != 0 {
		t.Errorf("a store that was never used has %v, %v", all, err)
	}
}

func TestAClusterHoldsItsArtefactsUntilItsStateIsRemoved(t *testing.T) {
	store := &artefact.Store{Dir: t.TempDir()}
	dir := t.TempDir()
	state := func(name string) string { return filepath.Join(dir, name) }
	if path, _, err := store.Held(); err != nil || path != "" {
		t.Fatalf("held for %q, %v", path, err)
	}
	for day, name := range []string{"gone", "older", "younger"} {
		if err := os.WriteFile(state(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := store.Hold(state(name)); err != nil {
			t.Fatal(err)
		}
		holds, err := filepath.Glob(filepath.Join(store.Dir, "holds", "*"))
		if err != nil || len(holds) != day+1 {
			t.Fatalf("%v, %v", holds, err)
		}
		for _, hold := range holds {
			if text, err := os.ReadFile(hold); err == nil && string(text) == state(name) {
				age(t, hold, day+1)
			}
		}
	}
	if err := os.Remove(state("gone")); err != nil {
		t.Fatal(err)
	}
	if path, since, err := store.Held(); err != nil || path != state("older") || !since.Equal(epoch.AddDate(0, 0, 1)) {
		t.Errorf("held for %q since %v, %v", path, since, err)
	}
	if err := store.Hold(state("older")); err != nil {
		t.Fatal(err)
	}
	if path, _, err := store.Held(); err != nil || path != state("younger") {
		t.Errorf("after the older one began anew: held for %q, %v", path, err)
	}
}
