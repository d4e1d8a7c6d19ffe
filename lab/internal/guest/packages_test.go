package guest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"berth.dev/berth/lab/internal/progress"
)

func TestMissingPackagesAreNamedOnceAndInOrder(t *testing.T) {
	programs := map[string]string{"a": "pkg-2", "b": "pkg-1", "c": "pkg-2", "d": "pkg-3"}
	got := missing(programs, func(name string) bool { return name == "d" })
	if want := []string{"pkg-1", "pkg-2"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTwoLabsThatInstallPackagesAtOnceWaitForEachOther(t *testing.T) {
	dir := t.TempDir()
	lock := filepath.Join(dir, "lock")
	// This apt-get fails unless its lab holds the lock, which only one lab can.
	script := "#!/bin/sh\nif flock --nonblock " + lock + " true; then exit 100; fi\necho \"$*\" >> \"$0.log\"\n"
	if err := os.WriteFile(filepath.Join(dir, "apt-get"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	var labs sync.WaitGroup
	for range 4 {
		labs.Go(func() {
			step := progress.Discard.Step("install")
			if err := install(t.Context(), step, lock, []string{"pkg-1"}); err != nil {
				t.Error(err)
			}
		})
	}
	labs.Wait()
	log, err := os.ReadFile(filepath.Join(dir, "apt-get.log"))
	if got := strings.Count(string(log), "\n"); err != nil || got != 8 {
		t.Errorf("apt-get ran %d times, want 8: %v", got, err)
	}
}
