package kernel

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestZvolsAreToldFromOtherDevices(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"zd0", "zd16", "zd1024", "sda", "zram0", "nvme0n1", "zdx"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got, err := zvolsIn(dir)
	want := []string{filepath.Join(dir, "zd0"), filepath.Join(dir, "zd1024"), filepath.Join(dir, "zd16")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := zvolsIn(filepath.Join(dir, "none")); err != nil || len(got) != 0 {
		t.Errorf("of nothing: %v, %v", got, err)
	}
}

func TestDevicesAreAskedThatMayWellBeTheOne(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	nodes := []node{{"old", at(1)}, {"new", at(8)}, {"as old", at(1)}, {"younger", at(2)}}
	newestFirst(nodes)
	var got []string
	for _, n := range nodes {
		got = append(got, n.path)
	}
	if want := []string{"new", "younger", "old", "as old"}; !slices.Equal(got, want) {
		t.Errorf("they are asked as %q, want %q", got, want)
	}
}

func TestTheModuleTellsItsVersionOrThereIsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "version")
	if got := versionIn(file); got != "" {
		t.Errorf("without a module: %q", got)
	}
	if err := os.WriteFile(file, []byte("2.1.11-1+deb12u1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := versionIn(file); got != "2.1.11-1+deb12u1" {
		t.Errorf("with one: %q", got)
	}
}
