package install

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestPodsChangeWithTheirImages(t *testing.T) {
	c := Config{Root: t.TempDir(), Set: []string{Scheduler, Extender}}
	dir := filepath.Join(c.Root, "bin", "images")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	write := func(part, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, part+".tar"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	values := func() []string {
		t.Helper()
		values, err := c.values()
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	for _, part := range []string{"agent", "controller", "scheduler"} {
		write(part, part)
	}
	before := values()
	if !slices.Contains(before, "extender.tlsSecret="+extenderSecret) || !slices.Equal(before, values()) {
		t.Errorf("the values are %v, and then %v", before, values())
	}
	write("agent", "another")
	changed := 0
	for i, value := range values() {
		if value != before[i] {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("one image is another, and %d values are", changed)
	}
}

func TestImagesHaveToBeBuiltFirst(t *testing.T) {
	if _, err := (Config{Root: t.TempDir()}).values(); err == nil {
		t.Error("installed without images")
	}
}
