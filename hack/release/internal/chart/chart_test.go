package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const text = `# A comment.
a:
  b: ""   # stays
  c: {d: old, e: 1}

version: 0.1.0
`

func TestAValueIsReplacedAndTheRestStays(t *testing.T) {
	got, err := fill([]byte(text), map[string]string{"a.b": "new", "a.c.d": "x", "version": "0.2.0"})
	want := strings.NewReplacer(`b: ""`, `b: "new"`, "d: old", `d: "x"`, "0.1.0", `"0.2.0"`).Replace(text)
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("%v, text (-want +got):\n%s", err, diff)
	}
}

func TestAValueThatIsNotThereIsRefused(t *testing.T) {
	for _, key := range []string{"a.x", "x", "a", "a.b.c"} {
		if _, err := fill([]byte(text), map[string]string{key: "new"}); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: error is %v, want one that names the key", key, err)
		}
	}
}

func TestFilesThatAnEditorLeftAreNotPacked(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("Chart.yaml", "name: c\nversion: 0.1.0\nappVersion: 0.1.0\n")
	write("values.yaml", "i: {registry: \"\", digest: \"\"}\n")
	read := func() Chart {
		t.Helper()
		c, err := Read(dir, "1.0.0", []Image{{Key: "i", Registry: "r", Digest: "d"}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := read()
	write("values.yaml~", "old")
	write(".values.yaml.swp", "open")
	if after := read(); string(after.Archive()) != string(before.Archive()) {
		t.Error("the archive has files that an editor left")
	}
}
