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
	// As apt-get does, this one fails if another one runs.
	script := "#!/bin/sh\nmkdir \"$0.lock\" || exit 100\necho \"$*\" >> \"$0.log\"\nsleep 0.1\nrmdir \"$0.lock\"\n"
	if err := os.WriteFile(filepath.Join(dir, "apt-get"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	var labs sync.WaitGroup
	for range 4 {
		labs.Go(func() {
			step := progress.Discard.Step("install")
			if err := install(t.Context(), step, filepath.Join(dir, "lock"), []string{"pkg-1"}); err != nil {
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
