package inline

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMarksOutliveTheirMaker(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plugins", "marks")
	first := MarkDir(dir)
	m := Mark{id, owner}
	if has, err := first.Has(m); has || err != nil {
		t.Errorf("before: %v, %v", has, err)
	}
	for range 2 {
		if err := first.Set(m); err != nil {
			t.Fatal(err)
		}
	}
	second := MarkDir(dir)
	if has, err := second.Has(m); !has || err != nil {
		t.Errorf("after: %v, %v", has, err)
	}
	got, err := second.List()
	if diff := cmp.Diff([]Mark{m}, got); diff != "" || err != nil {
		t.Errorf("%s %v", diff, err)
	}
	for range 2 {
		if err := second.Remove(m); err != nil {
			t.Fatal(err)
		}
	}
	if has, err := first.Has(m); has || err != nil {
		t.Errorf("removed: %v, %v", has, err)
	}
}

func TestAMarkIsOfOneVolumeOfOnePod(t *testing.T) {
	d := MarkDir(t.TempDir())
	if err := d.Set(Mark{id, owner}); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Mark){
		"a different volume": func(m *Mark) { m.ID += "0" },
		"a different pod":    func(m *Mark) { m.Owner.PodUID += "0" },
		"a different name":   func(m *Mark) { m.Owner.Name += "0" },
	} {
		m := Mark{id, owner}
		change(&m)
		if has, err := d.Has(m); has || err != nil {
			t.Errorf("%s has the mark: %v", name, err)
		}
	}
}

func TestAFileThatIsNoMarkIsNotListed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"README", "pvc-1_uid_scratch", "inline-1_uid", "inline-1_uid_a_b"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := MarkDir(dir).List(); len(got) != 0 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestADirectoryThatIsNotThereHasNoMarks(t *testing.T) {
	if got, err := MarkDir(filepath.Join(t.TempDir(), "none")).List(); len(got) != 0 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if err := MarkDir(filepath.Join(t.TempDir(), "none")).Remove(Mark{id, owner}); err != nil {
		t.Error(err)
	}
}

// A pod whose mark is not on the disk must not have its volume: a later loss of its data
// would go unnoticed.
func TestAMarkThatFailsSaysWhy(t *testing.T) {
	inFile := func(t *testing.T, d MarkDir) {
		t.Helper()
		if err := os.WriteFile(string(d), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// full has a directory in the place of the mark, with something in it.
	full := func(t *testing.T, d MarkDir) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(d.path(Mark{id, owner}), "x"), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	// unsynced has a device in the place of the mark, which cannot be synced.
	unsynced := func(t *testing.T, d MarkDir) {
		t.Helper()
		if err := errors.Join(os.Mkdir(string(d), 0o750), os.Symlink(os.DevNull, d.path(Mark{id, owner}))); err != nil {
			t.Fatal(err)
		}
	}
	has := func(d MarkDir) error { _, err := d.Has(Mark{id, owner}); return err }
	set := func(d MarkDir) error { return d.Set(Mark{id, owner}) }
	remove := func(d MarkDir) error { return d.Remove(Mark{id, owner}) }
	list := func(d MarkDir) error { _, err := d.List(); return err }
	for what, test := range map[string]struct {
		prepare func(t *testing.T, d MarkDir)
		call    func(d MarkDir) error
		why     string
	}{
		"the mark cannot be looked for":              {inFile, has, "not a directory"},
		"the directory of marks cannot be made":      {inFile, set, "making directory of marks"},
		"the mark cannot be written":                 {full, set, "is a directory"},
		"the mark cannot be synced":                  {unsynced, set, "sync"},
		"the mark cannot be removed":                 {full, remove, "directory not empty"},
		"the directory of marks cannot be read":      {inFile, list, "listing marks"},
		"a missing directory cannot be synced":       {func(*testing.T, MarkDir) {}, func(d MarkDir) error { return syncDir(string(d)) }, "no such file"},
		"a directory of the kernel cannot be synced": {func(*testing.T, MarkDir) {}, func(MarkDir) error { return syncDir("/proc") }, "sync"},
	} {
		t.Run(what, func(t *testing.T) {
			d := MarkDir(filepath.Join(t.TempDir(), "marks"))
			test.prepare(t, d)
			if err := test.call(d); err == nil || !strings.Contains(err.Error(), test.why) {
				t.Errorf("error %v; want %q", err, test.why)
			}
		})
	}
}
