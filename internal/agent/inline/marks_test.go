package inline

import (
	"os"
	"path/filepath"
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
		"another volume": func(m *Mark) { m.ID += "0" },
		"another pod":    func(m *Mark) { m.Owner.PodUID += "0" },
		"another name":   func(m *Mark) { m.Owner.Name += "0" },
	} {
		m := Mark{id, owner}
		change(&m)
		if has, err := d.Has(m); has || err != nil {
			t.Errorf("%s has the mark: %v", name, err)
		}
	}
}

func TestWhatIsNoMarkIsLeftAlone(t *testing.T) {
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
